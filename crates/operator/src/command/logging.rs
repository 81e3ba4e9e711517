//! The log of the operator: its flags, and how it is written; traces are collected beside it.

use super::value::boolean;
use anyhow::bail;
use cluster::trace::TARGET;
use runtime::traces::{Collector, LOG_TARGET};
use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

const LEVELS: &str = "use off, error, warn, info, debug or trace";

#[derive(clap::Args)]
pub(crate) struct Logging {
    /// Log at debug level
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    development: bool,
    /// Log format: text or json
    #[arg(long, default_value = "text", env = "LOG_FORMAT", value_name = "FORMAT", value_parser = log_format)]
    log_format: LogFormat,
    /// Go's flag for the level: debug, info, error, panic, or the number of a debug level
    #[arg(long, value_name = "LEVEL", value_parser = zap_level)]
    zap_log_level: Option<LevelFilter>,
    /// Go's flag for the format: json or console
    #[arg(long, value_name = "FORMAT", value_parser = ["json", "console"])]
    zap_encoder: Option<String>,
    /// Go's flag for --development
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    zap_devel: bool,
    /// Accepted for compatibility with the predecessor and ignored: there are no stack traces
    #[arg(long, value_name = "LEVEL")]
    zap_stacktrace_level: Option<String>,
    /// Accepted for compatibility with the predecessor and ignored: times are in RFC 3339
    #[arg(long, value_name = "FORMAT")]
    zap_time_encoding: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LogFormat {
    Text,
    Json,
}

/// Parses a log format; an empty variable is as good as none.
fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "" | "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("write text or json".into()),
    }
}

impl Logging {
    /// Starts the log; a flag goes before the variable `LOG_LEVEL`. With a collector of traces, log lines carry the id of their trace.
    pub(crate) fn start(&self, collector: Option<Collector>) -> anyhow::Result<()> {
        let default = if self.development || self.zap_devel { LevelFilter::DEBUG } else { LevelFilter::INFO };
        let variable = std::env::var("LOG_LEVEL").unwrap_or_default();
        let filter = match self.zap_log_level {
            Some(level) => Targets::new().with_default(level),
            None => filter(&variable, default)?,
        };
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
        // Colours only on a terminal.
        let log = log.with_ansi(std::io::stderr().is_terminal());
        let is_json = self.log_format == LogFormat::Json || self.zap_encoder.as_deref() == Some("json");
        let log = if is_json { log.json().with_span_list(false).boxed() } else { log.boxed() };
        tracing_subscriber::registry().with(layers(log, filter, collector)).init();
        Ok(())
    }
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The log, and traces beside it: without a collector no span is enabled, and with one the log shows the id of their trace.
///
/// A list, because an absent layer would enable all spans.
fn layers(log: BoxedLayer, filter: Targets, collector: Option<Collector>) -> Vec<BoxedLayer> {
    let shown = if collector.is_some() { LevelFilter::INFO } else { LevelFilter::OFF };
    let filter = filter.with_target(LOG_TARGET, shown).with_target(TARGET, LevelFilter::OFF);
    let only_spans = Targets::new().with_target(TARGET, LevelFilter::INFO);
    let traces = collector.map(|collector| collector.with_filter(only_spans).boxed());
    [log.with_filter(filter).boxed()].into_iter().chain(traces).collect()
}

/// The client logs answers of the server as they are, and these may quote secrets: only who asks for its log gets it.
const QUIET_CLIENT: (&str, LevelFilter) = ("kube_client", LevelFilter::INFO);

/// The filter that `LOG_LEVEL` describes: a level, and perhaps other levels for parts of the program, as `info,kube=debug`.
fn filter(text: &str, default: LevelFilter) -> anyhow::Result<Targets> {
    if text.trim().is_empty() {
        return Ok(quiet_client(Targets::new().with_default(default)));
    }
    // The library takes an unknown word for a part of the program, and mutes the rest.
    let unknown = text.split(',').find(|part| !part.contains('=') && part.trim().parse::<LevelFilter>().is_err());
    match (unknown, text.parse::<Targets>()) {
        (None, Ok(filter)) if text.contains("kube") => Ok(filter),
        (None, Ok(filter)) => Ok(quiet_client(filter)),
        (Some(part), _) => bail!("LOG_LEVEL has the unknown level {part:?}; {LEVELS}"),
        (None, Err(_)) => bail!("LOG_LEVEL is {text:?}, which is not a level; {LEVELS}"),
    }
}

fn quiet_client(filter: Targets) -> Targets {
    let is_verbose = filter.default_level().is_none_or(|level| level > QUIET_CLIENT.1);
    if is_verbose { filter.with_target(QUIET_CLIENT.0, QUIET_CLIENT.1) } else { filter }
}

/// Go's levels; a number is a debug level, and higher ones show more.
fn zap_level(text: &str) -> Result<LevelFilter, String> {
    match (text.to_ascii_lowercase().as_str(), text.parse::<u8>()) {
        ("debug", _) | (_, Ok(1)) => Ok(LevelFilter::DEBUG),
        ("info", _) => Ok(LevelFilter::INFO),
        ("error" | "dpanic" | "panic" | "fatal", _) => Ok(LevelFilter::ERROR),
        ("warn", _) => Ok(LevelFilter::WARN),
        (_, Ok(2..)) => Ok(LevelFilter::TRACE),
        _ => Err(format!("{text:?} is not a level; use debug, info, error, panic or a number from 1 on")),
    }
}

#[cfg(test)]
mod tests {
    use super::{LOG_TARGET, LogFormat, TARGET, filter, layers, log_format, zap_level};
    use runtime::traces::collector;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn requests_to_hypervisors_are_collected_as_all_others() {
        assert_eq!(hypervisor::TRACE_TARGET, TARGET);
    }

    #[test]
    fn spans_are_enabled_only_if_traces_are_collected() {
        for (collector, is_enabled) in [(None, false), (Some(collector().0), true)] {
            let filter = Targets::new().with_default(LevelFilter::TRACE);
            let log = tracing_subscriber::fmt::layer().with_writer(std::io::sink).boxed();
            let layers = layers(log, filter, collector);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layers), || {
                let spans = [tracing::info_span!(target: TARGET, "a"), tracing::info_span!(target: LOG_TARGET, "b")];
                assert_eq!(spans.map(|span| !span.is_disabled()), [is_enabled; 2]);
            });
        }
    }

    #[test]
    fn an_unknown_level_is_an_error_and_an_empty_one_is_the_default() {
        let read = |text| filter(text, LevelFilter::INFO).map(|filter| filter.to_string());
        for (text, filter) in [
            ("", "info"),
            (" ", "info"),
            ("DEBUG", "kube_client=info,debug"),
            ("off", "off"),
            ("info,kube=debug", "kube=debug,info"),
        ] {
            assert_eq!(read(text).unwrap(), filter, "{text:?}");
        }
        for text in ["loud", "info,loud", "virtpilot=loud", "debug=x"] {
            let error = read(text).unwrap_err().to_string();
            assert!(
                error.starts_with("LOG_LEVEL ") && error.ends_with("use off, error, warn, info, debug or trace"),
                "{error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_empty_log_format_is_the_default() {
        assert_eq!((log_format(""), log_format("json")), (Ok(LogFormat::Text), Ok(LogFormat::Json)));
        assert!(log_format("xml").is_err());
    }

    #[test]
    fn gos_levels_are_understood() {
        assert_eq!(zap_level("debug"), Ok(LevelFilter::DEBUG));
        assert_eq!((zap_level("1"), zap_level("9")), (Ok(LevelFilter::DEBUG), Ok(LevelFilter::TRACE)));
        assert_eq!(zap_level("panic"), Ok(LevelFilter::ERROR));
        assert!(zap_level("loud").is_err() && zap_level("0").is_err() && zap_level("-1").is_err());
    }
}

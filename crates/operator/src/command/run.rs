//! `run`: runs the operator.

use super::target::on_runtime;
use crate::autopilot::Metrics;
use crate::pack::Pack;
use crate::{autopilot as product, images};
use anyhow::Context;
use autopilot::Config;
use catalog::Catalog;
use cluster::{Timeouts, lease};
use runtime::{health, lead, stop};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kubeconfig file; by default $KUBECONFIG, or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace of the HyperConverged
    #[arg(long, default_value = api::hco::NAMESPACE)]
    namespace: String,
    #[command(flatten)]
    pack: Pack,
    /// Treat an absent annotation `autopilot` on the HyperConverged as off
    #[arg(long)]
    opt_in: bool,
    /// Kinds whose closed fields users may patch, comma-separated; `virtpilot explain patch KIND` shows what is closed
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = change::PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: change::PatchableKinds,
    /// Prune created objects that are not wanted any more; if false, only report them
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    prune: bool,
    /// The address of the metrics endpoint; 0 disables it
    #[arg(long, default_value = ":8080", value_name = "ADDRESS", value_parser = health::parse_address)]
    metrics_bind_address: Address,
    /// The address of /healthz and /readyz; 0 disables them
    #[arg(long, default_value = ":8082", value_name = "ADDRESS", value_parser = health::parse_address)]
    health_probe_bind_address: Address,
    /// Enable leader election: of several processes only the leader writes
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long a request may take before it fails and is retried
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = parse_time)]
    request_timeout: Duration,
    /// How long a watch may be silent before it is restarted; the server sends a bookmark about once a minute
    #[arg(long, default_value = "75s", value_name = "TIME", value_parser = parse_time)]
    watch_silence: Duration,
    /// How often everything is listed again, in case a watch missed an event
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = parse_time)]
    verify_every: Duration,
    /// Accepted for compatibility with the predecessor and ignored: the operator waits for the HyperConverged CRD without a limit
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = parse_time)]
    crd_validation_timeout: Duration,
    /// Accepted for compatibility with the predecessor and ignored: there is no debug server
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS", value_parser = health::parse_address)]
    debug_bind_address: Address,
    /// Accepted for compatibility with the predecessor and ignored: there is no debug server
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    enable_debug_server: bool,
    /// Log at debug level
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    development: bool,
    /// Log format
    #[arg(long, value_enum, default_value_t, env = "LOG_FORMAT")]
    log_format: LogFormat,
}

// An alias, because clap treats a plain Option as an optional argument.
type Address = std::option::Option<std::net::SocketAddr>;

/// Parses a duration in Go's notation: 10s, 1m30s.
fn parse_time(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is not a duration; write it as 10s or 1m30s");
    let time = text.parse::<jiff::SignedDuration>().map_err(|_| invalid())?;
    Duration::try_from(time).ok().filter(|time| !time.is_zero()).ok_or_else(invalid)
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LogFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    start_log(arguments.log_format, arguments.development)?;
    let catalog = arguments.pack.load()?;
    on_runtime(operate(arguments, catalog))
}

async fn operate(arguments: Arguments, catalog: Catalog) -> anyhow::Result<()> {
    let Arguments { request_timeout: request, watch_silence: silence, verify_every: verify, .. } = arguments;
    let timeouts = Timeouts { request, silence, verify };
    let server = cluster::connect(arguments.kubeconfig.as_deref(), timeouts, autopilot::IDENTITY).await?;
    let metrics = Arc::new(Metrics::new());
    let (readiness, missing) = watch::channel(vec![api::hco::KIND.to_owned()]);
    health::serve(arguments.health_probe_bind_address, "probes", health::probes(missing)).await?;
    let text = {
        let metrics = metrics.clone();
        move || metrics.text()
    };
    health::serve(arguments.metrics_bind_address, "metrics", health::metrics(text)).await?;
    let stop = stop::on_signal()?;
    let pod = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok()).filter(|pod| !pod.is_empty());
    if arguments.leader_elect && pod.is_none() {
        anyhow::bail!("--leader-elect needs a unique identity\n  fix: set POD_NAME to the name of the pod");
    }
    let pod = pod.unwrap_or_else(|| "virtpilot".into());
    let config = Config {
        namespace: arguments.namespace,
        opt_in: arguments.opt_in,
        patchable: arguments.patchable_kinds,
        prune: arguments.prune,
        images: images::from_environment(),
        writes: true,
    };
    if !arguments.leader_elect {
        let permit = lease::without_election();
        return product::run(config, catalog, server, permit, (pod, metrics), readiness, stop).await;
    }
    let (namespace, shown, leading) = (config.namespace.clone(), readiness.clone(), server.clone());
    let work = |permit, stop| product::run(config, catalog, server, permit, (pod.clone(), metrics), readiness, stop);
    lead(&leading, &namespace, &pod, &shown, stop, work).await
}

fn start_log(format: LogFormat, development: bool) -> anyhow::Result<()> {
    let default = if development { "debug" } else { "info" };
    let level = std::env::var("LOG_LEVEL").unwrap_or_else(|_| default.into());
    let filter = tracing_subscriber::EnvFilter::try_new(&level)
        .with_context(|| format!("LOG_LEVEL {level:?} is invalid\n  fix: use error, warn, info, debug or trace"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // Colours only on a terminal.
    let log = log.with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

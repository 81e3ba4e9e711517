//! `run`: the operator.

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
    /// The cluster; by default as KUBECONFIG says, or the pod's own service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the HyperConverged lives
    #[arg(long, default_value = api::hco::NAMESPACE)]
    namespace: String,
    #[command(flatten)]
    pack: Pack,
    /// Do nothing unless the HyperConverged says so
    #[arg(long)]
    opt_in: bool,
    /// Sensitive kinds that users may patch after all, comma-separated; `virtpilot explain patch KIND` shows which are closed
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = change::PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: change::PatchableKinds,
    /// Delete what we made once its user does not want it any more; else only say so
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    prune: bool,
    /// Where metrics are served; 0 is nowhere
    #[arg(long, default_value = ":8080", value_name = "ADDRESS", value_parser = health::parse_address)]
    metrics_bind_address: Address,
    /// Where /healthz and /readyz are served; 0 is nowhere
    #[arg(long, default_value = ":8082", value_name = "ADDRESS", value_parser = health::parse_address)]
    health_probe_bind_address: Address,
    /// Let only one process of several write
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long a request may take before it has failed and is made again
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = parse_time)]
    request_timeout: Duration,
    /// How long a watch may be silent before it counts as dead; the server says something about once a minute
    #[arg(long, default_value = "75s", value_name = "TIME", value_parser = parse_time)]
    watch_silence: Duration,
    /// How often everything is listed again, in case a watch has kept something to itself
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = parse_time)]
    verify_every: Duration,
    /// Accepted from those who move over: a missing HyperConverged CRD is waited for, however long it takes
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = parse_time)]
    crd_validation_timeout: Duration,
    /// Accepted from those who move over: there is no debug server
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS", value_parser = health::parse_address)]
    debug_bind_address: Address,
    /// Accepted from those who move over: there is no debug server
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    enable_debug_server: bool,
    /// Log in full
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    development: bool,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t, env = "LOG_FORMAT")]
    log_format: LogFormat,
}

// Under another name, because clap takes a plain Option for an argument that may be left out.
type Address = std::option::Option<std::net::SocketAddr>;

/// A time as Go writes it: 10s, 1m30s.
fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time; write it as 10s or 1m30s");
    let time = text.parse::<jiff::SignedDuration>().map_err(|_| wrong())?;
    Duration::try_from(time).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LogFormat {
    /// For a person
    #[default]
    Text,
    /// For a program
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
        anyhow::bail!("--leader-elect needs a name that no other process has\n  fix: set POD_NAME");
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
    let usual = if development { "debug" } else { "info" };
    let level = std::env::var("LOG_LEVEL").unwrap_or_else(|_| usual.into());
    let filter = tracing_subscriber::EnvFilter::try_new(&level)
        .with_context(|| format!("LOG_LEVEL is {level:?}; use error, warn, info, debug or trace"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // Colours are for eyes, not for files.
    let log = log.with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

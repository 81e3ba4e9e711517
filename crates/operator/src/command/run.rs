//! `run`: runs the operator.

use super::logging::Logging;
use super::skew;
use super::target::on_runtime;
use super::value::{boolean, duration, namespace};
use crate::metrics::Metrics;
use crate::pack::Pack;
use crate::{autopilot as product, images};
use autopilot::{Config, Previews};
use catalog::Catalog;
use cluster::{Access, Timeouts, lease};
use runtime::{Probes, health, lead, stop};
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
    #[arg(long, default_value = api::hco::NAMESPACE, value_parser = namespace)]
    namespace: String,
    #[command(flatten)]
    pack: Pack,
    /// Treat an absent annotation `autopilot` on the HyperConverged as off
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    opt_in: bool,
    /// Kinds whose closed fields users may patch, comma-separated; `virtpilot explain patch KIND` shows what is closed
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = change::PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: change::PatchableKinds,
    /// Prune created objects that are not wanted any more; if false, only report them
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    prune: bool,
    /// The address of the metrics endpoint; 0 disables it
    #[arg(long, default_value = ":8080", value_name = "ADDRESS", value_parser = health::parse_address)]
    metrics_bind_address: Address,
    /// The address of /healthz and /readyz; 0 disables them
    #[arg(long, default_value = ":8082", value_name = "ADDRESS", value_parser = health::parse_address)]
    health_probe_bind_address: Address,
    /// Enable leader election: of several processes only the leader writes
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long a request may take before it fails and is retried
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = duration)]
    request_timeout: Duration,
    /// How long a watch may be silent before it is restarted; the server sends a bookmark about once a minute
    #[arg(long, default_value = "75s", value_name = "TIME", value_parser = duration)]
    watch_silence: Duration,
    /// How often everything is listed again, in case a watch missed an event
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = duration)]
    verify_every: Duration,
    /// Accepted for compatibility with the predecessor and ignored: the operator waits for the HyperConverged CRD without a limit
    #[arg(long, default_value = "10s", value_name = "TIME")]
    crd_validation_timeout: String,
    /// Accepted for compatibility with the predecessor and ignored: there is no debug server
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS")]
    debug_bind_address: String,
    /// Accepted for compatibility with the predecessor and ignored: there is no debug server
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    enable_debug_server: bool,
    #[command(flatten)]
    logging: Logging,
}

// An alias, because clap treats a plain Option as an optional argument.
type Address = std::option::Option<health::BindAddress>;

/// Runs the operator; `flags` are those that differ from their defaults.
pub(crate) fn run(arguments: Arguments, flags: &[String]) -> anyhow::Result<()> {
    arguments.logging.start()?;
    let catalog = arguments.pack.load()?;
    tracing::info!(
        "virtpilot {} ({}) starts: catalogue {}, namespace {}, flags: {}",
        env!("CARGO_PKG_VERSION"),
        env!("VIRTPILOT_COMMIT"),
        catalog.digest(),
        arguments.namespace,
        if flags.is_empty() { "all as by default".to_owned() } else { flags.join(" ") }
    );
    on_runtime(operate(arguments, catalog))
}

async fn operate(arguments: Arguments, catalog: Catalog) -> anyhow::Result<()> {
    let Arguments { request_timeout: request, watch_silence: silence, verify_every: verify, .. } = arguments;
    let timeouts = Timeouts { request, silence, verify };
    let server = cluster::connect(Access::file(arguments.kubeconfig.as_deref()), timeouts, autopilot::IDENTITY).await?;
    let metrics = Arc::new(Metrics::new());
    let (readiness, missing) = watch::channel(vec![api::hco::KIND.to_owned()]);
    let (standby, standby_shown) = watch::channel(String::new());
    health::serve(arguments.health_probe_bind_address, "probes", health::probes(missing, standby_shown)).await?;
    let text = {
        let metrics = metrics.clone();
        move || metrics.text()
    };
    health::serve(arguments.metrics_bind_address, "metrics", health::metrics(text)).await?;
    let stop = stop::on_signal()?;
    let pod = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok()).filter(|pod| !pod.is_empty());
    if arguments.leader_elect && pod.is_none() {
        anyhow::bail!("--leader-elect needs a unique identity; set POD_NAME to the name of the pod");
    }
    let pod = pod.unwrap_or_else(|| "virtpilot".into());
    let config = Config {
        namespace: arguments.namespace,
        opt_in: arguments.opt_in,
        patchable: arguments.patchable_kinds,
        prune: arguments.prune,
        images: images::from_environment(),
        writes: true,
        previews: Previews::Off,
        operator: None,
        approved: None,
    };
    if !arguments.leader_elect {
        let permit = lease::without_election();
        return product::run(config, catalog, server, permit, (pod, metrics), readiness, stop).await;
    }
    let (namespace, leading) = (config.namespace.clone(), server.clone());
    let probes = Probes { missing: readiness.clone(), standby };
    let replica = skew::leader(&pod, &catalog);
    let work = |permit, stop| product::run(config, catalog, server, permit, (pod.clone(), metrics), readiness, stop);
    lead(&leading, &namespace, replica, &probes, stop, work).await
}

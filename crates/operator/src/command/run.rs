//! `run`: runs the operator.

mod fleet_product;
mod fleet_servers;

use super::logging::Logging;
use super::skew;
use super::target::on_runtime;
use super::value::{boolean, duration, namespace};
use crate::autopilot::Observers;
use crate::metrics::Metrics;
use crate::pack::Pack;
use crate::{advisor as advisor_product, autopilot as product, debug, images};
use autopilot::{Config, Previews};
use catalog::Catalog;
use cluster::lease::Replica;
use cluster::{KubeconfigContext, Permit, Server, Timeouts, lease};
use fleet_servers::FleetServers;
use futures::FutureExt;
use runtime::access::Guard;
use runtime::traces::collect::Collected;
use runtime::traces::{Collector, Exporter, Settings};
use runtime::{Probes, Stop, health, lead, stop, tls, traces};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kubeconfig file; by default $KUBECONFIG, or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace of the HyperConverged and of the leases; the fleet's own namespace
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
    /// What to run, comma-separated: autopilot, advisor, fleet. Each has its own lease, so that they may also run in processes of their own.
    /// By default the autopilot, and the advisor once its CRD is served
    #[arg(long, value_name = "PRODUCTS", value_delimiter = ',')]
    products: Vec<Product>,
    /// The address of the metrics endpoint; 0 disables it
    #[arg(long, default_value = ":8080", value_name = "ADDRESS", value_parser = health::parse_address)]
    metrics_bind_address: Address,
    /// Serve metrics over TLS, and only to those whom the API server lets get /metrics
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", env = "METRICS_SECURE", value_parser = boolean, action = clap::ArgAction::Set)]
    metrics_secure: bool,
    /// The folder of the metrics' certificate, which is read again when it changes; implies --metrics-secure. Without it, and until it has
    /// a certificate, the certificate is self-signed
    #[arg(long, value_name = "FOLDER", env = "METRICS_CERT_PATH")]
    metrics_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder
    #[arg(long, default_value = "tls.crt", value_name = "FILE")]
    metrics_cert_name: String,
    /// The file of its key in that folder
    #[arg(long, default_value = "tls.key", value_name = "FILE")]
    metrics_cert_key: String,
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
    /// The address of the debug server; only this machine may reach it
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS", value_parser = loopback)]
    debug_bind_address: Address,
    /// Serve what is rendered and why, below /debug
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    enable_debug_server: bool,
    /// Send traces to this OpenTelemetry collector (OTLP over HTTP, JSON), for example http://collector:4318; by default the variables
    /// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT, and no traces without them
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    #[command(flatten)]
    servers: FleetServers,
    #[command(flatten)]
    logging: Logging,
}

/// A product of this binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Product {
    /// Keeps the platform as it should be.
    Autopilot,
    /// Plans profiles, and applies what a person approved.
    Advisor,
    /// Creates machines on hypervisors, and ends them.
    Fleet,
}

// An alias, because clap treats a plain Option as an optional argument.
type Address = std::option::Option<health::BindAddress>;

/// Parses an address that only this machine reaches.
fn loopback(text: &str) -> Result<Address, String> {
    let address = health::parse_address(text)?;
    match &address {
        Some(address) if !address.is_loopback() => Err(format!(
            "{text:?} is reachable from elsewhere, and nobody has to log in; use 127.0.0.1 and kubectl port-forward"
        )),
        _ => Ok(address),
    }
}

/// Runs the operator; `flags` are those that differ from their defaults.
pub(crate) fn run(arguments: Arguments, flags: &[String]) -> anyhow::Result<()> {
    let traces = Traces::read(arguments.otlp_endpoint.as_deref(), service(&arguments.products))?;
    let (traces, collector) = traces.map_or((None, None), |(traces, collector)| (Some(traces), Some(collector)));
    arguments.logging.start(collector)?;
    let catalog = arguments.pack.load()?;
    tracing::info!(
        "virtpilot {} ({}) starts: catalogue {}, namespace {}, flags: {}",
        env!("CARGO_PKG_VERSION"),
        env!("VIRTPILOT_COMMIT"),
        catalog.digest(),
        arguments.namespace,
        if flags.is_empty() { "all as by default".to_owned() } else { flags.join(" ") }
    );
    on_runtime(async {
        let exporter = traces.map(Traces::start).transpose()?;
        let outcome = operate(arguments, catalog).await;
        if let Some(exporter) = exporter {
            exporter.close().await;
        }
        outcome
    })
}

/// Traces that are collected and not sent yet.
struct Traces {
    settings: Settings,
    collected: Collected,
}

impl Traces {
    /// Collects traces if somebody wants them.
    fn read(flag: Option<&str>, service: &str) -> anyhow::Result<Option<(Traces, Collector)>> {
        let variable = |name: &str| std::env::var(name).ok();
        let Some(mut settings) = Settings::read(flag, variable, service)? else { return Ok(None) };
        settings.resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        settings.resource.extend(pod().map(|pod| ("service.instance.id".to_owned(), pod)));
        let (collector, collected) = traces::collector();
        Ok(Some((Traces { settings, collected }, collector)))
    }

    fn start(self) -> anyhow::Result<Exporter> {
        tracing::info!("traces are sent to {}", self.settings.address);
        Exporter::start(&self.settings, self.collected)
    }
}

/// The name of the service in traces: that of the product, or of the first one if there are several.
fn service(products: &[Product]) -> &'static str {
    match products {
        [Product::Fleet] => api::fleet::FIELD_MANAGER,
        [Product::Advisor] => api::advisor::FIELD_MANAGER,
        _ => api::FIELD_MANAGER,
    }
}

/// The name of this pod.
fn pod() -> Option<String> {
    ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok()).filter(|pod| !pod.is_empty())
}

async fn operate(arguments: Arguments, catalog: Catalog) -> anyhow::Result<()> {
    let started = jiff::Timestamp::now();
    let Arguments { request_timeout: request, watch_silence: silence, verify_every: verify, .. } = arguments;
    let timeouts = Timeouts { request, silence, verify };
    let chosen = KubeconfigContext::current(arguments.kubeconfig.as_deref());
    let server = cluster::connect(chosen, timeouts, autopilot::IDENTITY).await?;
    let is_chosen = !arguments.products.is_empty();
    let chosen = if is_chosen { arguments.products.clone() } else { vec![Product::Autopilot, Product::Advisor] };
    let is_wanted = |product: &Product| chosen.contains(product);
    let products = [Product::Autopilot, Product::Advisor, Product::Fleet].into_iter().filter(is_wanted);
    let metrics = Metrics::new(&catalog.digest().to_string());
    let metrics = Arc::new(match is_wanted(&Product::Fleet) {
        true => metrics.with_fleet(chosen.iter().all(|product| *product == Product::Fleet)),
        false => metrics,
    });
    let products: Vec<(Product, Probes)> = products.map(|product| (product, probes(product))).collect();
    // Without a choice the advisor waits until somebody can ask it for something.
    let advisor_served = watch::channel(is_chosen).0;
    if !is_chosen {
        for (_, probes) in products.iter().filter(|(product, _)| *product == Product::Advisor) {
            probes.missing.send_replace(Vec::new());
        }
    }
    let shown = products.iter().map(|(_, probes)| (probes.missing.subscribe(), probes.standby.subscribe())).collect();
    health::serve(arguments.health_probe_bind_address.clone(), "probes", None, health::probes(shown)).await?;
    serve_metrics(&arguments, &server, metrics.clone()).await?;
    let mut questions = match arguments.enable_debug_server {
        true => {
            let (routes, questions) = debug::routes(&catalog, metrics.clone());
            health::serve(arguments.debug_bind_address.clone(), "the debug server", None, routes).await?;
            Some(questions)
        }
        false => None,
    };
    let stop = stop::on_signal()?.shared();
    let pod = pod();
    if arguments.leader_elect && pod.is_none() {
        anyhow::bail!("--leader-elect needs a unique identity; set POD_NAME to the name of the pod");
    }
    let instance = pod.unwrap_or_else(|| "virtpilot".into());
    let mut running = Vec::new();
    let replica = skew::leader(&instance, &catalog, started);
    let mut loaded = Some(catalog);
    for (kind, probes) in products {
        let (catalog, pack) = (loaded.take(), arguments.pack.clone());
        let (server, stop) = (server.clone(), stop.clone());
        let replica = arguments.leader_elect.then(|| replica.clone());
        let (namespace, readiness, instance) = (arguments.namespace.clone(), probes.missing.clone(), instance.clone());
        running.push(match kind {
            Product::Autopilot => {
                let config = autopilot_config(&arguments);
                let questions = questions.take().unwrap_or_else(|| mpsc::channel(1).1);
                let observers = Observers {
                    instance,
                    started,
                    metrics: metrics.clone(),
                    advisor: advisor_served.clone(),
                    questions,
                };
                let leading = server.clone();
                let Some(catalog) = catalog else { continue };
                let work = |permit, stop| product::run(config, catalog, server, permit, observers, readiness, stop);
                lead_or_run(leading, namespace, replica, probes, stop.boxed(), work).boxed()
            }
            Product::Advisor => {
                let config = advisor::Config {
                    namespace: arguments.namespace.clone(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    images: images::from_environment(),
                    secure_metrics: is_secure(&arguments),
                    patchable: arguments.patchable_kinds.clone(),
                };
                // The same connections, under names of its own.
                let server = server.under(advisor::IDENTITY);
                let (leading, observers) = (server.clone(), (instance, metrics.clone()));
                let mut served = advisor_served.subscribe();
                let waiting = stop.clone();
                let run = async move {
                    tokio::select! {
                        _ = served.wait_for(|is_served| *is_served) => {}
                        () = waiting => return Ok(()),
                    }
                    // A second copy is kept only once somebody can ask for something.
                    let catalog = catalog.map_or_else(|| pack.load(), Ok)?;
                    let work = |permit, stop| {
                        advisor_product::run(config, catalog, server, permit, observers, readiness, stop)
                    };
                    lead_or_run(leading, namespace, replica, probes, stop.boxed(), work).await
                };
                run.boxed()
            }
            Product::Fleet => {
                let server = server.under(fleet::IDENTITY);
                let settings = arguments.servers.settings();
                fleet_product::run(
                    settings,
                    (server, namespace),
                    replica,
                    probes,
                    (instance, started, metrics.clone()),
                    stop,
                )
                .boxed()
            }
        });
    }
    // One that ends ends all: what runs on alone would look healthy.
    futures::future::try_join_all(running).await.map(|_| ())
}

/// Works while this replica leads, or without an election.
async fn lead_or_run<W>(
    server: Server,
    namespace: String,
    replica: Option<Replica>,
    probes: Probes,
    stop: Stop,
    work: impl FnOnce(Permit, Stop) -> W,
) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>>,
{
    match replica {
        Some(replica) => lead(&server, &namespace, replica, &probes, stop, work).await,
        None => work(lease::without_election(), stop).await,
    }
}

fn probes(product: Product) -> Probes {
    let waiting = match product {
        Product::Autopilot => api::hco::KIND,
        Product::Advisor | Product::Fleet => "the API server",
    };
    Probes { missing: watch::channel(vec![waiting.to_owned()]).0, standby: watch::channel(String::new()).0 }
}

fn is_secure(arguments: &Arguments) -> bool {
    arguments.metrics_secure || arguments.metrics_cert_path.is_some()
}

fn autopilot_config(arguments: &Arguments) -> Config {
    Config {
        namespace: arguments.namespace.clone(),
        opt_in: arguments.opt_in,
        patchable: arguments.patchable_kinds.clone(),
        prune: arguments.prune,
        images: images::from_environment(),
        secure_metrics: is_secure(arguments),
        writes: true,
        previews: Previews::Off,
        operator: None,
        approved: None,
        last_rules: None,
    }
}

/// Serves the metrics, over TLS if that is asked for.
async fn serve_metrics(arguments: &Arguments, server: &Server, metrics: Arc<Metrics>) -> anyhow::Result<()> {
    let (address, text) = (arguments.metrics_bind_address.clone(), move || metrics.text());
    let files = arguments.metrics_cert_path.as_ref().map(|folder| tls::Files {
        certificate: folder.join(&arguments.metrics_cert_name),
        key: folder.join(&arguments.metrics_cert_key),
    });
    let certificate = (arguments.metrics_secure || files.is_some()).then(|| {
        let is_fleet = arguments.products == [Product::Fleet];
        let name = if is_fleet { api::fleet::FIELD_MANAGER } else { api::FIELD_MANAGER };
        let service = format!("{name}-metrics.{}.svc", arguments.namespace);
        tls::Source { of: "the metrics", files, names: vec![service, "localhost".to_owned()] }
    });
    let guard = certificate.is_some().then(|| Guard::new(server.clone(), "/metrics"));
    health::serve(address, "metrics", certificate, health::metrics(text, guard)).await
}

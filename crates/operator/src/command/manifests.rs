//! `manifests`: prints the objects that install the operator.

use super::print;
use super::value::{account, boolean, namespace, products};
use crate::pack::Pack;
use install::{Account, Installation, Products, Settings};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pack: Pack,
    /// The namespace of the HyperConverged, which is also the operator's
    #[arg(long, default_value = api::hco::NAMESPACE, value_parser = namespace)]
    namespace: String,
    /// What is installed: autopilot,advisor in one Deployment, or one of them alone; the advisor alone has an account of its own
    #[arg(long, default_value = "autopilot,advisor", value_parser = products)]
    products: Products,
    /// Also print the namespace; whoever deletes it deletes the HyperConverged, too
    #[arg(long)]
    create_namespace: bool,
    /// The operator's image
    #[arg(long, default_value_t = Settings::default().image)]
    image: String,
    /// The number of replicas, of which one leads
    #[arg(long, default_value_t = Settings::default().replicas)]
    replicas: u32,
    /// Treat an absent annotation `autopilot` on the HyperConverged as off
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    opt_in: bool,
    /// Prune created objects that are not wanted any more; if false, only report them
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    prune: bool,
    /// The image for the feature kubevirt-metrics-exporter
    #[arg(long, default_value = "", hide_default_value = true)]
    metrics_exporter_image: String,
    /// The ports that the operator may connect to: those of the API server's Service and of the servers behind it
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_values_t = Settings::default().api_server_ports)]
    api_server_ports: Vec<u16>,
    /// Serve metrics over TLS, and only to those who may read them; also prints the rights for it
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", value_parser = boolean, action = clap::ArgAction::Set)]
    metrics_secure: bool,
    /// The service account of the Prometheus that may read secure metrics
    #[arg(long, value_name = "NAMESPACE/NAME", default_value_t = Settings::default().prometheus, value_parser = account)]
    prometheus: Account,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { pack, namespace, create_namespace, image, replicas, opt_in, prune, .. } = arguments;
    let Arguments { products, metrics_exporter_image, api_server_ports, metrics_secure, prometheus, .. } = arguments;
    let settings = Settings {
        namespace,
        products,
        image,
        replicas,
        opt_in,
        prune,
        metrics_exporter_image,
        api_server_ports,
        metrics_secure,
        prometheus,
    };
    let installation = Installation::new(&pack.load()?, &settings).map_err(|problems| pack.without_role(&problems))?;
    let space = create_namespace.then(|| install::namespace(&settings.namespace));
    let objects: Vec<String> =
        space.into_iter().chain(installation.objects()).map(|object| catalog::yaml_text(&object)).collect();
    print(&objects.join("---\n"))
}

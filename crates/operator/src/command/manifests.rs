//! `manifests`: prints the objects that install the operator.

use super::print;
use super::value::{account, boolean, namespace, products, secret};
use crate::fleet::servers::PublicAddress;
use crate::pack::Pack;
use install::{Account, FLEET_NAMESPACE, FleetSettings, Installation, Products, Settings};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pack: Pack,
    /// The namespace of the HyperConverged, which is also the operator's; by default openshift-cnv. The fleet needs no HyperConverged; by
    /// default it is in virtpilot-fleet
    #[arg(long, value_parser = namespace)]
    namespace: Option<String>,
    /// What is installed: autopilot,advisor in one Deployment, one of them alone, or the fleet alone; the advisor alone and the fleet have
    /// accounts of their own
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
    #[command(flatten)]
    fleet: FleetRights,
    /// The ports of hypervisors that the fleet may connect to
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_values_t = FleetSettings::default().hypervisor_ports)]
    fleet_hypervisor_ports: Vec<u16>,
    /// Where the machines of the fleet reach its bootstrap endpoint; without it no runner is started
    #[arg(long, value_name = "HOST:PORT", value_parser = public_address)]
    fleet_bootstrap_address: Option<String>,
    /// How the Service of the fleet, for webhooks and the bootstrap endpoint, is reached
    #[arg(long, default_value_t = FleetSettings::default().service_type, value_name = "TYPE", value_parser = ["ClusterIP", "NodePort", "LoadBalancer"])]
    fleet_service_type: String,
}

/// Checks the address, which is passed on as it is.
fn public_address(text: &str) -> Result<String, String> {
    PublicAddress::parse(text).map(|_| text.to_owned())
}

/// What the fleet may reach.
#[derive(clap::Args)]
pub(crate) struct FleetRights {
    /// The Secrets of hypervisors that the fleet may read, as NAMESPACE/NAME, comma-separated; it reads no others
    #[arg(long, value_name = "SECRETS", value_delimiter = ',', value_parser = secret)]
    pub(crate) fleet_secrets: Vec<(String, String)>,
    /// The namespaces in which the fleet may create and delete VirtualMachines of KubeVirt, comma-separated
    #[arg(long, value_name = "NAMESPACES", value_delimiter = ',', value_parser = namespace)]
    pub(crate) fleet_kubevirt_namespaces: Vec<String>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { pack, namespace, create_namespace, image, replicas, opt_in, prune, .. } = arguments;
    let Arguments { products, metrics_exporter_image, api_server_ports, metrics_secure, prometheus, .. } = arguments;
    let fleet = arguments.fleet;
    let default = if products == Products::Fleet { FLEET_NAMESPACE } else { api::hco::NAMESPACE };
    let settings = Settings {
        namespace: namespace.unwrap_or_else(|| default.to_owned()),
        products,
        image,
        replicas,
        opt_in,
        prune,
        metrics_exporter_image,
        api_server_ports,
        metrics_secure,
        prometheus,
        fleet: FleetSettings {
            secrets: fleet.fleet_secrets.into_iter().collect(),
            kubevirt: fleet.fleet_kubevirt_namespaces.into_iter().collect(),
            hypervisor_ports: arguments.fleet_hypervisor_ports,
            bootstrap_address: arguments.fleet_bootstrap_address,
            service_type: arguments.fleet_service_type,
        },
    };
    let installation = Installation::new(&pack.load()?, &settings).map_err(|problems| pack.without_role(&problems))?;
    let space = create_namespace.then(|| install::namespace(&settings.namespace));
    let objects: Vec<String> =
        space.into_iter().chain(installation.objects()).map(|object| catalog::yaml_text(&object)).collect();
    print(&objects.join("---\n"))
}

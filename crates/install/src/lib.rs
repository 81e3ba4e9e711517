//! The objects that install the operator, from a few settings: the one source of manifests, kustomization, chart and bundle.

mod advisor;
mod fleet;
mod metrics;
mod monitoring;
mod people;
mod policy;
mod rules;
#[cfg(test)]
mod tests;
mod workload;

use catalog::Catalog;
pub use fleet::{
    FleetSettings, dashboard as fleet_dashboard, dashboard_of_jobs as jobs_dashboard, monitoring as fleet_monitoring,
    rights as fleet_rights,
};
pub use metrics::deployment_patch;
pub use monitoring::advisor_monitoring;
use serde_json::{Value, json};
use std::fmt;

/// The name of the Deployment, the service account, the roles and the policies; it is the predecessor's, whose Deployment is replaced.
pub const NAME: &str = api::FIELD_MANAGER;
/// The same of the advisor, where it is deployed by itself; its roles and its policy always have it.
pub use catalog::role::ADVISOR;
/// The name of the fleet's Deployment, account and roles. It is never deployed with the others: its account reads Secrets.
pub const FLEET: &str = api::fleet::FIELD_MANAGER;
/// The namespace of the fleet, unless somebody chooses another one.
pub const FLEET_NAMESPACE: &str = "virtpilot-fleet";

/// What one Deployment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Products {
    /// The autopilot and the advisor.
    #[default]
    Both,
    /// The autopilot alone.
    Autopilot,
    /// The advisor alone, with an account of its own.
    Advisor,
    /// The fleet alone, with an account of its own.
    Fleet,
}

/// What an administrator may choose.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace of the operator, which is also that of the HyperConverged; the fleet needs none.
    pub namespace: String,
    /// What is installed.
    pub products: Products,
    /// The operator's image.
    pub image: String,
    /// The number of replicas, of which one leads.
    pub replicas: u32,
    /// Whether an absent annotation `autopilot` means off.
    pub opt_in: bool,
    /// Whether objects that are not wanted any more are pruned.
    pub prune: bool,
    /// The image of the metrics exporter; without it, the feature is not applicable.
    pub metrics_exporter_image: String,
    /// The ports of the API server: those of its Service and of the servers behind it.
    pub api_server_ports: Vec<u16>,
    /// Whether metrics are served over TLS, and only to those who may read them.
    pub metrics_secure: bool,
    /// The account of the Prometheus that may read them.
    pub prometheus: Account,
    /// What the fleet may reach.
    pub fleet: FleetSettings,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            namespace: api::hco::NAMESPACE.to_owned(),
            products: Products::Both,
            // Nobody but the owner of a node can provide an image of this name.
            image: format!("localhost/virtpilot:{}", env!("CARGO_PKG_VERSION")),
            replicas: 2,
            opt_in: false,
            prune: true,
            metrics_exporter_image: String::new(),
            api_server_ports: vec![443, 6443],
            metrics_secure: false,
            // OpenShift's.
            prometheus: Account { namespace: "openshift-monitoring".to_owned(), name: "prometheus-k8s".to_owned() },
            fleet: FleetSettings::default(),
        }
    }
}

impl Settings {
    /// The name of the Deployment and of its account.
    fn name(&self) -> &'static str {
        match self.products {
            Products::Both | Products::Autopilot => NAME,
            Products::Advisor => ADVISOR,
            Products::Fleet => FLEET,
        }
    }
}

/// The objects by what they are for, each part in the order in which it is applied.
#[derive(Debug)]
pub struct Installation {
    /// The kinds of the advisor's or of the fleet's objects; nothing with the autopilot alone.
    pub crds: Vec<Value>,
    /// The service account and the rights of the autopilot; nothing without it.
    pub operator: Vec<Value>,
    /// The rights of the advisor, and its service account if it is deployed by itself; nothing without it.
    pub advisor: Vec<Value>,
    /// The service account and the rights of the fleet; nothing without it.
    pub fleet: Vec<Value>,
    /// The roles for people.
    pub people: Vec<Value>,
    /// What keeps people within their roles where RBAC cannot.
    pub policy: Vec<Value>,
    /// What runs the operator.
    pub workload: Vec<Value>,
    /// The rights that secure metrics need; nothing if they are not secure.
    pub metrics: Vec<Value>,
}

impl Installation {
    /// The objects for a catalogue. The error lists every reason why there is no role for it.
    pub fn new(catalog: &Catalog, settings: &Settings) -> Result<Installation, Vec<String>> {
        let products = settings.products;
        let (mut operator, mut advisor, mut crds) = (Vec::new(), Vec::new(), Vec::new());
        let (mut people, mut policy, mut fleet) = (Vec::new(), Vec::new(), Vec::new());
        if [Products::Both, Products::Autopilot].contains(&products) {
            operator = catalog::role_objects(catalog, &settings.namespace)?;
            let rules = rules::of(&operator);
            people.extend(people::roles(&rules));
            policy.extend(policy::objects(&rules));
        }
        if [Products::Both, Products::Advisor].contains(&products) {
            crds.push(catalog::profile::crd(&catalog.profiles));
            advisor = catalog::role::advisor_role_objects(catalog, &settings.namespace, settings.name())?;
            people.extend(advisor::roles());
            policy.extend(advisor::policy());
        }
        if products == Products::Fleet {
            crds = fleet::crds();
            fleet = fleet::rights(settings);
            people = fleet::people();
        }
        let metrics = if settings.metrics_secure { metrics::roles(settings) } else { Vec::new() };
        let workload = workload::objects(settings);
        Ok(Installation { crds, operator, advisor, fleet, people, policy, workload, metrics })
    }

    /// All objects in the order in which they are applied.
    pub fn objects(self) -> impl Iterator<Item = Value> {
        let Installation { crds, operator, advisor, fleet, people, policy, metrics, workload } = self;
        [crds, operator, advisor, fleet, people, policy, metrics, workload].into_iter().flatten()
    }
}

/// The namespace. It is not part of an installation: whoever deletes it deletes the HyperConverged, too. It has no pod security level,
/// because KubeVirt's own pods in it need more than the operator.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

//! Connects hypervisors as their `HypervisorCluster` and its Secrets say, and carries out requests on those connections.

use super::secrets::{Secrets, Unavailable, unread};
use crate::metrics::Metrics;
use api::fleet::{Credentials as Named, HypervisorCluster, HypervisorClusterSpec, HypervisorMachineTemplate, Provider};
use change::Key;
use cluster::{Permit, Server, live};
use fleet::connection::{Login, Verification, login, uses, verification};
use fleet::hypervisor::{Answer, ClusterKey, Failure, Network, Operation, Request};
use fleet::object::fleet_kind;
use hypervisor::{Credentials, Hands, Limits, Link, Scope, Secret, Settings, Tls, kubevirt};
use protocol::Served;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// All connections to hypervisors.
pub(super) struct Connections {
    server: Server,
    /// The namespace of the fleet itself.
    home: String,
    permit: Permit,
    hands: Hands,
    /// One lock for each hypervisor: what is asked while its connection is made waits for it.
    turns: Mutex<BTreeMap<ClusterKey, Turn>>,
    /// Where each of them is connected.
    endpoints: Mutex<BTreeMap<ClusterKey, String>>,
}

type Turn = Arc<tokio::sync::Mutex<()>>;

impl Connections {
    pub(super) fn new(server: Server, home: String, permit: Permit, metrics: Arc<Metrics>) -> Connections {
        let report: hypervisor::Report = Arc::new(move |exchange| {
            metrics.exchanged(exchange);
            let (method, path, status) = (exchange.method, exchange.path, exchange.status.label());
            tracing::debug!("hypervisor: {method} {path}: {status} after {} ms", exchange.duration.as_millis());
        });
        Connections {
            server,
            home,
            permit,
            hands: Hands::new(report),
            turns: Mutex::default(),
            endpoints: Mutex::default(),
        }
    }

    /// Carries out one request. Each check connects anew, so that other settings and credentials are used from then on.
    pub(super) async fn carry_out(&self, request: &Request) -> Result<Answer, Failure> {
        {
            let turn = self.turn(&request.cluster);
            let _turn = turn.lock().await;
            if request.operation == Operation::Disconnect {
                self.endpoints().remove(&request.cluster);
                self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.cluster);
                return self.hands.carry_out(request).await;
            }
            let is_connected = self.hands.connected().contains(&request.cluster);
            let is_elsewhere = self.endpoints().get(&request.cluster).is_some_and(|known| *known != request.endpoint);
            let is_due = request.operation == Operation::Check || !is_connected || is_elsewhere;
            match self.connect(&request.cluster, is_due).await {
                // Without an answer of the API server the settings are those of before.
                Err(Failure::Transient(_)) if is_connected => {}
                Err(failure) => {
                    self.hands.disconnect(&request.cluster);
                    return Err(failure);
                }
                Ok(()) => {}
            }
        }
        let endpoint = self.endpoints().get(&request.cluster).cloned().unwrap_or_default();
        if endpoint != request.endpoint {
            return Err(Failure::Transient("the endpoint of the hypervisor has just been changed".into()));
        }
        if !self.permit.is_valid() {
            return Err(Failure::Transient("this replica does not lead any more".into()));
        }
        self.hands.carry_out(request).await
    }

    fn turn(&self, cluster: &ClusterKey) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(cluster.clone()).or_default().clone()
    }

    async fn connect(&self, cluster: &ClusterKey, is_due: bool) -> Result<(), Failure> {
        match is_due {
            true => {
                let (link, spec) = link(&self.server, Some(&self.home), cluster).await?;
                self.hands.connect(cluster, link)?;
                self.endpoints().insert(cluster.clone(), spec.endpoint);
                Ok(())
            }
            false => Ok(()),
        }
    }

    fn endpoints(&self) -> std::sync::MutexGuard<'_, BTreeMap<ClusterKey, String>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects one hypervisor for a person, with what they may read; what these templates use of it is checked, too.
pub(crate) async fn connect_once(
    server: &Server,
    cluster: &ClusterKey,
    templates: &[HypervisorMachineTemplate],
) -> Result<Hands, Failure> {
    let hands = Hands::new(Arc::new(|_| {}));
    let (mut link, spec) = link(server, None, cluster).await?;
    if let Link::Proxmox(settings) = &mut link {
        let scope = &mut settings.scope;
        let uses = uses(cluster, &spec, templates);
        scope.storages.extend(uses.disks);
        scope.seed_storages.extend(uses.seeds);
        scope.networks.extend(uses.networks);
        scope.templates.extend(uses.templates);
        scope.runs_in_guests = uses.runs_in_guests;
    }
    hands.connect(cluster, link)?;
    Ok(hands)
}

/// How a hypervisor is connected, as the API server says now; `home` is the namespace of the fleet, unless a person asks.
async fn link(
    server: &Server,
    home: Option<&str>,
    cluster: &ClusterKey,
) -> Result<(Link, HypervisorClusterSpec), Failure> {
    let spec = read_cluster(server, cluster).await?;
    let of = format!("HypervisorCluster {}/{}", cluster.namespace, cluster.name);
    let secrets = Secrets::new(server, home, &cluster.namespace, of);
    let link = match spec.provider {
        Provider::Proxmox => Link::Proxmox(Box::new(proxmox(&spec, secrets).await?)),
        Provider::Kubevirt => Link::KubeVirt(Box::new(kubevirt::Settings {
            client: server.client.clone(),
            identity: server.address.clone(),
            namespace: cluster.namespace.clone(),
            limits: Limits::default(),
        })),
    };
    Ok((link, spec))
}

async fn read_cluster(server: &Server, cluster: &ClusterKey) -> Result<HypervisorClusterSpec, Failure> {
    let ClusterKey { namespace, name } = cluster;
    let kind = fleet_kind("HypervisorCluster");
    let served = Served::at(kind.clone(), "hypervisorclusters", true);
    let key = Key { kind, namespace: namespace.clone(), name: name.clone() };
    let found = live::whole(server, &served, &key).await.map_err(|failure| {
        let remedy = "grant the fleet the right to get hypervisorclusters of the group hyperfleet.io";
        unread(&failure, &format!("the HypervisorCluster {namespace}/{name}"), remedy)
    })?;
    let Some(found) = found else {
        let message = format!("there is no HypervisorCluster {namespace}/{name}");
        return Err(Failure::Configuration { message, remedy: "create it again".into() });
    };
    let read: Result<HypervisorCluster, _> = serde_json::from_value(found);
    read.map(|found| found.spec).map_err(|error| Failure::Configuration {
        message: format!("the HypervisorCluster {namespace}/{name} cannot be read: {error}"),
        remedy: "install the CRDs of this version".into(),
    })
}

/// The settings of a Proxmox VE.
async fn proxmox(spec: &HypervisorClusterSpec, mut secrets: Secrets<'_>) -> Result<Settings, Failure> {
    let credentials = credentials(spec.credentials.as_ref(), &mut secrets).await?;
    let tls = match verification(&spec.tls) {
        Verification::Skipped => Tls::SkipVerify,
        Verification::Fingerprint(fingerprint) => Tls::Fingerprint(fingerprint),
        Verification::Authorities(reference) => Tls::Authorities(secrets.value("tls.caCertificate", &reference).await?),
        Verification::System => Tls::System,
    };
    Ok(Settings {
        endpoint: spec.endpoint.clone(),
        allows_http: spec.allow_insecure_http,
        credentials,
        tls,
        scope: Scope {
            nodes: spec.nodes.iter().cloned().collect(),
            storages: spec.default_storage.iter().cloned().collect(),
            networks: spec
                .default_network
                .iter()
                .map(|bridge| Network { bridge: bridge.clone(), vlan: None })
                .collect(),
            pools: spec.resource_pool.iter().cloned().collect(),
            ..Scope::default()
        },
        limits: Limits::default(),
    })
}

async fn credentials(named: Option<&Named>, secrets: &mut Secrets<'_>) -> Result<Credentials, Failure> {
    match login(named) {
        Some(Login::Token(id, secret)) => {
            let id = secrets.value("credentials.tokenId", &id).await?;
            let secret = secrets.value("credentials.tokenSecret", &secret).await?;
            Ok(Credentials::Token { id, secret: Secret::from(secret) })
        }
        Some(Login::Password(username, password)) => {
            let username = secrets.value("credentials.username", &username).await?;
            let password = secrets.value("credentials.password", &password).await?;
            Ok(Credentials::Password { username, password: Secret::from(password) })
        }
        None => Err(Failure::Configuration {
            message: format!("the {} has no credentials", secrets.of()),
            remedy: "set credentials.tokenId and credentials.tokenSecret, or username and password".into(),
        }),
    }
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Failure {
        match why {
            Unavailable::Transient(message) => Failure::Transient(message),
            Unavailable::Configuration(message, remedy) => Failure::Configuration { message, remedy },
        }
    }
}

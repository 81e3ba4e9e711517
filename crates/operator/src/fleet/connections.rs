//! Connects hypervisors as their `HypervisorCluster` and its Secrets say, and carries out requests on those connections.

use crate::metrics::Metrics;
use api::fleet::{
    Credentials as Named, HypervisorCluster, HypervisorClusterSpec, HypervisorMachineTemplate, Provider, SecretKeyRef,
};
use change::{Key, Kind};
use cluster::{Permit, Server, live};
use fleet::connection::{Login, Verification, login, uses, verification};
use fleet::hypervisor::{Answer, ClusterKey, Failure, Network, Operation, Request};
use fleet::object::fleet_kind;
use hypervisor::{Credentials, Hands, Limits, Link, Scope, Secret, Settings, Tls, kubevirt};
use k8s_openapi::ByteString;
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
                let (link, endpoint) = link(&self.server, Some(&self.home), cluster).await?;
                self.hands.connect(cluster, link)?;
                self.endpoints().insert(cluster.clone(), endpoint);
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
    let (mut link, _) = link(server, None, cluster).await?;
    if let Link::Proxmox(settings) = &mut link {
        let scope = &mut settings.scope;
        let default_network = scope.networks.first().map(|network| network.bridge.clone());
        let default_storage = scope.storages.first().cloned();
        let uses = uses(cluster, default_network.as_deref(), default_storage.as_deref(), templates);
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
async fn link(server: &Server, home: Option<&str>, cluster: &ClusterKey) -> Result<(Link, String), Failure> {
    let spec = read_cluster(server, cluster).await?;
    let secrets = Secrets { server, home, cluster, read: BTreeMap::new() };
    let link = match spec.provider {
        Provider::Proxmox => Link::Proxmox(Box::new(proxmox(&spec, secrets).await?)),
        Provider::Kubevirt => Link::KubeVirt(Box::new(kubevirt::Settings {
            client: server.client.clone(),
            identity: server.address.clone(),
            namespace: cluster.namespace.clone(),
            limits: Limits::default(),
        })),
    };
    Ok((link, spec.endpoint))
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
        None => {
            let ClusterKey { namespace, name } = secrets.cluster;
            Err(Failure::Configuration {
                message: format!("the HypervisorCluster {namespace}/{name} has no credentials"),
                remedy: "set credentials.tokenId and credentials.tokenSecret, or username and password".into(),
            })
        }
    }
}

/// The Secrets of one hypervisor, each read once.
struct Secrets<'a> {
    server: &'a Server,
    home: Option<&'a str>,
    cluster: &'a ClusterKey,
    read: BTreeMap<String, BTreeMap<String, ByteString>>,
}

impl Secrets<'_> {
    /// The value of a key; `field` is where the `HypervisorCluster` names it. An error never contains a value.
    async fn value(&mut self, field: &str, reference: &SecretKeyRef) -> Result<String, Failure> {
        if !self.read.contains_key(&reference.name) {
            let data = self.data(field, &reference.name).await?;
            self.read.insert(reference.name.clone(), data);
        }
        let data = self.read.get(&reference.name).cloned().unwrap_or_default();
        value_of(&data, self.cluster, field, reference)
    }

    async fn data(&self, field: &str, name: &str) -> Result<BTreeMap<String, ByteString>, Failure> {
        let ClusterKey { namespace, name: cluster } = self.cluster;
        let kind = Kind::new("v1", "Secret");
        let served = Served::at(kind.clone(), "secrets", true);
        let key = Key { kind, namespace: namespace.clone(), name: name.to_owned() };
        let what =
            format!("the Secret {namespace}/{name}, which {field} of HypervisorCluster {namespace}/{cluster} names");
        let found = live::whole(self.server, &served, &key).await.map_err(|failure| {
            let remedy = match self.home {
                Some(home) => format!(
                    "let the fleet read it: virtpilot rbac --product fleet --namespace {home} --fleet-secrets {namespace}/{name} \
                     | kubectl apply -f -"
                ),
                None => "ask for the right to get it; the condition Ready of the HypervisorCluster says what the fleet finds"
                    .to_owned(),
            };
            unread(&failure, &what, &remedy)
        })?;
        let Some(mut found) = found else {
            return Err(Failure::Configuration {
                message: format!("{what}, does not exist"),
                remedy: format!(
                    "create it: kubectl create secret generic {name} --namespace {namespace} --from-literal=KEY=VALUE"
                ),
            });
        };
        // The text of the error could quote a value.
        serde_json::from_value::<Option<_>>(found["data"].take()).map(Option::unwrap_or_default).map_err(|_| {
            Failure::Configuration { message: format!("{what}, cannot be read"), remedy: "create it again".into() }
        })
    }
}

fn value_of(
    data: &BTreeMap<String, ByteString>,
    cluster: &ClusterKey,
    field: &str,
    reference: &SecretKeyRef,
) -> Result<String, Failure> {
    let ClusterKey { namespace, name: cluster } = cluster;
    let SecretKeyRef { name, key } = reference;
    let wrong = |what: &str, remedy: String| {
        let of = format!("{field} of HypervisorCluster {namespace}/{cluster}");
        Failure::Configuration { message: format!("the Secret {namespace}/{name}: {what} ({of})"), remedy }
    };
    let Some(value) = data.get(key) else {
        let keys: Vec<&str> = data.keys().map(String::as_str).collect();
        let has = if keys.is_empty() { "it has none".to_owned() } else { format!("it has {}", keys.join(", ")) };
        return Err(wrong(&format!("there is no key {key:?}"), format!("add the key, or correct {field}.key: {has}")));
    };
    let Ok(text) = std::str::from_utf8(&value.0) else {
        return Err(wrong(&format!("the key {key:?} is not text"), format!("store the plain text in {key}")));
    };
    // Whoever makes a Secret from a file often has a line break at its end.
    let text = text.trim_end_matches(['\r', '\n']);
    match text.is_empty() {
        true => Err(wrong(&format!("the key {key:?} is empty"), format!("store the value in {key}"))),
        false => Ok(text.to_owned()),
    }
}

/// Why something could not be read: a refusal needs a person, everything else passes.
fn unread(failure: &cluster::Failure, what: &str, remedy: &str) -> Failure {
    match failure.is_refusal() {
        true => {
            Failure::Configuration { message: format!("{what}, cannot be read: {failure}"), remedy: remedy.to_owned() }
        }
        false => Failure::Transient(format!("{what}, cannot be read now: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::value_of;
    use api::fleet::SecretKeyRef;
    use fleet::hypervisor::{ClusterKey, Failure};
    use k8s_openapi::ByteString;

    #[test]
    fn a_value_is_text_without_its_last_line_break_or_it_is_said_what_is_wrong_and_no_value() {
        let data = [("good", &b"hush\r\n"[..]), ("empty", b"\n"), ("binary", b"\xff\xfe")];
        let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.to_vec()))).into();
        let cluster = ClusterKey { namespace: "ci".into(), name: "pve".into() };
        let value = |key: &str| {
            let reference = SecretKeyRef { name: "token".into(), key: key.into() };
            value_of(&data, &cluster, "credentials.tokenSecret", &reference)
        };
        assert_eq!(value("good"), Ok("hush".to_owned()));
        for (key, wrong, fix) in [
            ("other", "there is no key \"other\"", "correct credentials.tokenSecret.key: it has binary, empty, good"),
            ("empty", "the key \"empty\" is empty", "store the value in empty"),
            ("binary", "the key \"binary\" is not text", "store the plain text in binary"),
        ] {
            let Err(Failure::Configuration { message, remedy }) = value(key) else { panic!("{key} is accepted") };
            assert!(
                message.starts_with(&format!("the Secret ci/token: {wrong}")) && remedy.ends_with(fix),
                "{message}; {remedy}"
            );
            assert!(
                message.contains("HypervisorCluster ci/pve") && !message.contains("hush") && !remedy.contains("hush")
            );
        }
    }
}

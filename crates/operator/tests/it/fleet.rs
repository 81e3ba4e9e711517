//! The fleet on a real API server, with the rights of its own role, and with a stand-in of Proxmox VE: machines are created and destroyed.

mod replicas;

use crate::operator::{Process, eventually, eventually_within, free_port, playground, readiness};
use crate::packages::{succeed, virtpilot};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use playground::Playground;
use playground::audit::Mark;
use playground::deployment::objects;
use playground::fleet_site::{self, HOME, SPACE};
use playground::proxmox::{Deed, Method, Options, ProxmoxStandIn, Setup, StandIn, Timing};
use playground::service_account::Account;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const SECRETS: &str = "ci/pve-token,ci/pve-ca";
/// A request that was given up may still be carried out for a minute, so that some deletions take longer.
const LONG: Duration = Duration::from_secs(120);

/// A cluster with the fleet, and a hypervisor.
pub(crate) struct Fleet {
    pub(crate) playground: Playground,
    pub(crate) proxmox: ProxmoxStandIn,
    account: Account,
    pub(crate) process: Option<Process>,
    log: PathBuf,
}

impl Fleet {
    /// Starts everything but the operator; `secrets` are those that it may read.
    pub(crate) async fn install(timing: Timing, secrets: &str) -> Fleet {
        let playground = playground().await;
        let options = Options { setup: Setup::cluster(timing), ..Options::for_test() };
        let proxmox = ProxmoxStandIn::start(&options).unwrap_or_else(|error| panic!("{error}"));
        let kubectl = playground.folder().join("kubectl");
        for namespace in [SPACE, HOME] {
            succeed(Command::new(&kubectl).args(["create", "namespace", namespace]));
        }
        // Its pods are fit for the strictest level.
        let strict = "pod-security.kubernetes.io/warn=restricted";
        succeed(Command::new(&kubectl).args(["label", "namespace", HOME, strict]));
        let mut arguments = vec!["manifests", "--products=fleet", "--create-namespace"];
        if !secrets.is_empty() {
            arguments.extend(["--fleet-secrets", secrets]);
        }
        let file = playground.folder().join("fleet.yaml");
        std::fs::write(&file, succeed(&mut virtpilot(&arguments)).0).unwrap();
        let (_, warnings) = succeed(Command::new(&kubectl).args(["apply", "--server-side", "--filename"]).arg(&file));
        assert!(!warnings.contains("Warning"), "{warnings}");
        let account = playground.account(HOME, HOME).await.unwrap();
        let log = playground.folder().join("fleet.log");
        Fleet { playground, proxmox, account, process: None, log }
    }

    /// Starts everything, with a token for the hypervisor and with its object.
    pub(crate) async fn start(timing: Timing) -> Fleet {
        Fleet::start_with(timing, SECRETS).await
    }

    /// The same with the right to read these Secrets.
    pub(crate) async fn start_with(timing: Timing, secrets: &str) -> Fleet {
        let mut fleet = Fleet::install(timing, secrets).await;
        fleet.restart();
        fleet.hypervisor().await;
        fleet
    }

    /// The objects of the hypervisor and its template, with a token.
    pub(crate) async fn hypervisor(&self) {
        let (id, secret) = self.token();
        self.secret("pve-token", json!({"id": id, "secret": secret})).await;
        self.connect().await;
        self.add_template("linux", "pve").await;
    }

    /// A template of a hypervisor.
    pub(crate) async fn add_template(&self, name: &str, cluster: &str) {
        self.apply("HypervisorMachineTemplate", name, fleet_site::template_spec(cluster)).await;
    }

    /// The template with a bridge of its own.
    pub(crate) async fn set_bridge(&self, bridge: &str) {
        let mut spec = fleet_site::template_spec("pve");
        spec["network"] = json!({"bridge": bridge});
        self.apply("HypervisorMachineTemplate", "linux", spec).await;
    }

    /// The id and the secret of the token with the rights of a fleet.
    pub(crate) fn token(&self) -> (String, String) {
        let (id, secret) = self.proxmox.credentials.fleet_token.split_once('=').unwrap();
        (id.to_owned(), secret.to_owned())
    }

    pub(crate) async fn secret(&self, name: &str, data: Value) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        let api = objects(&self.playground, "v1", "Secret", Some(SPACE));
        api.patch(name, &PatchParams::apply("admin").force(), &Patch::Apply(&secret)).await.unwrap();
    }

    /// The hypervisor, whose CA is in a Secret.
    async fn connect(&self) {
        self.secret("pve-ca", json!({"ca.crt": self.proxmox.ca_pem})).await;
        self.apply("HypervisorCluster", "pve", fleet_site::cluster_spec("pve", &self.proxmox.address)).await;
    }

    /// Another hypervisor, with Secrets of its own.
    pub(crate) async fn connect_to(&self, name: &str, proxmox: &ProxmoxStandIn) {
        let (id, secret) = proxmox.credentials.fleet_token.split_once('=').unwrap();
        self.secret(&format!("{name}-token"), json!({"id": id, "secret": secret})).await;
        self.secret(&format!("{name}-ca"), json!({"ca.crt": proxmox.ca_pem})).await;
        self.apply("HypervisorCluster", name, fleet_site::cluster_spec(name, &proxmox.address)).await;
    }

    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        objects(&self.playground, "hyperfleet.io/v1alpha1", kind, Some(SPACE))
    }

    pub(crate) async fn apply(&self, kind: &str, name: &str, spec: Value) {
        let object =
            json!({"apiVersion": "hyperfleet.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        eventually(&format!("{kind} {name} is accepted"), async || {
            match self.api(kind).patch(name, &PatchParams::apply("admin").force(), &Patch::Apply(&object)).await {
                Ok(_) => Some(()),
                Err(kube::Error::Api(status)) if status.code == 422 => panic!("{}", status.message),
                Err(_) => None,
            }
        })
        .await;
    }

    pub(crate) async fn claim(&self, name: &str) {
        self.apply("MachineClaim", name, json!({"templateRef": {"name": "linux"}})).await;
    }

    /// The status of an object, once it fits.
    pub(crate) async fn status(&self, kind: &str, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let last = std::sync::Mutex::new(Value::Null);
        let found = tokio::time::timeout(LONG, async {
            loop {
                if let Ok(object) = self.api(kind).get(name).await {
                    let status = object.data["status"].clone();
                    if fits(&status) {
                        return status;
                    }
                    *last.lock().unwrap() = status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let found = found.await;
        found.unwrap_or_else(|_| panic!("{kind} {name} never gets {what}: {:#}", last.lock().unwrap()))
    }

    /// The message of the Ready condition, once it has this reason.
    pub(crate) async fn reason(&self, kind: &str, name: &str, reason: &str) -> String {
        self.condition(kind, name, "Ready", reason).await
    }

    /// The message of a condition, once it has this reason.
    pub(crate) async fn condition(&self, kind: &str, name: &str, condition: &str, reason: &str) -> String {
        let found = |status: &Value| found(status, condition);
        let status = self.status(kind, name, reason, |status| found(status)["reason"] == reason).await;
        found(&status)["message"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn ready_claim(&self, name: &str) -> Value {
        self.status("MachineClaim", name, "Ready", |status| status["phase"] == "Ready").await
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
        eventually_within(LONG, &format!("{kind} {name} is gone"), async || {
            self.api(kind).get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// The ids of all machines but the template, and the images of their seeds.
    pub(crate) fn machines(&self) -> (BTreeSet<String>, usize) {
        self.proxmox.with(|state| {
            let ids = state.vms().keys().filter(|id| **id != Setup::TEMPLATE).map(ToString::to_string).collect();
            let volumes = state.storages().values().flat_map(|storage| storage.volumes.keys());
            (ids, volumes.filter(|(_, name)| name.ends_with(".iso")).count())
        })
    }

    /// How often a machine was cloned.
    fn clones(&self) -> usize {
        self.proxmox.with(|state| {
            state.history().deeds.iter().filter(|(_, _, _, deed)| matches!(deed, Deed::Cloned { .. })).count()
        })
    }

    /// The requests of the operator that were refused.
    pub(crate) fn denied(&self) -> Vec<String> {
        denied(&self.playground, &format!("{HOME}/{HOME}"))
    }

    /// The reasons of all events about an object.
    async fn events(&self, kind: &str, name: &str) -> BTreeSet<String> {
        let api = objects(&self.playground, "events.k8s.io/v1", "Event", Some(SPACE));
        let all = api.list(&ListParams::default()).await.unwrap();
        let is_about =
            |event: &&DynamicObject| event.data["regarding"]["kind"] == kind && event.data["regarding"]["name"] == name;
        all.items.iter().filter(is_about).map(|event| event.data["reason"].as_str().unwrap().to_owned()).collect()
    }

    /// Everything that people can see: objects, events and the log, also in its most detailed form.
    pub(crate) async fn shown(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap();
        log + &self.shown_objects().await
    }

    /// The same without the log.
    pub(crate) async fn shown_objects(&self) -> String {
        let mut text = String::new();
        for kind in ["HypervisorCluster", "HypervisorMachineTemplate", "MachineClaim", "RunnerPool"] {
            text.push_str(&serde_json::to_string(&self.api(kind).list(&ListParams::default()).await.unwrap()).unwrap());
        }
        let queue =
            objects(&self.playground, "v1", "ConfigMap", Some(HOME)).list(&ListParams::default()).await.unwrap();
        text.push_str(&serde_json::to_string(&queue).unwrap());
        let events = objects(&self.playground, "events.k8s.io/v1", "Event", None);
        text.push_str(&serde_json::to_string(&events.list(&ListParams::default()).await.unwrap()).unwrap());
        text
    }
}

/// The requests of an account that were refused.
fn denied(playground: &Playground, account: &str) -> Vec<String> {
    let requests = playground.audit_log().since(Mark::BEGINNING).unwrap().by(account);
    assert!(requests.count() > 0, "{requests:?}");
    let denied = requests.filter(|request| request.code == 403 || request.code == 401).0;
    denied.iter().map(|request| format!("{} {} {}", request.verb, request.resource, request.name)).collect()
}

/// The condition Ready.
pub(crate) fn ready(status: &Value) -> Value {
    found(status, "Ready")
}

/// The condition of this type.
fn found(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
}

/// P17: with exactly the rights of its role, none of which is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_a_machine_with_an_address_and_a_pool_keeps_two_and_nothing_is_left() {
    let mut fleet = Fleet::start(Timing::short()).await;
    let port = fleet.restart();
    fleet.reason("HypervisorCluster", "pve", "ConnectionSuccessful").await;
    fleet.claim("one").await;
    let status = fleet.ready_claim("one").await;
    let (id, address) =
        (status["vmRef"]["vmId"].as_str().unwrap(), status["networkInfo"]["ipAddress"].as_str().unwrap());
    assert!(
        address.parse::<std::net::IpAddr>().is_ok() && status["vmRef"]["hypervisorCluster"] == "ci/pve",
        "{status:#}"
    );
    // Once the guest has its address, the image of its cloud-init data is gone.
    let seeded = |status: &Value| status["seededTime"].is_string();
    fleet.status("MachineClaim", "one", "seeded", seeded).await;
    assert_eq!(fleet.machines(), ([id.to_owned()].into(), 0));
    let uid = objects(&fleet.playground, "v1", "Namespace", None).get(HOME).await.unwrap().metadata.uid.unwrap();
    let description =
        fleet.proxmox.with(|state| state.vm(id.parse().unwrap()).unwrap().description().unwrap().to_owned());
    assert!(description.contains(&uid) && description.contains("ci/one"), "{description}");
    let ready = eventually("the fleet is ready", async || readiness(port).filter(|text| text.contains(" 200 "))).await;
    assert!(!ready.contains("standby"), "{ready}");

    let listed = virtpilot(&["fleet", "list"]).env("KUBECONFIG", fleet.playground.kubeconfig()).output().unwrap();
    let line = format!("ci/one  Ready  {id}");
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&line), "{listed:?}");

    // The next id is taken by somebody else, whose machine the token cannot see.
    let theirs: u32 = id.parse::<u32>().unwrap() + 1;
    fleet.proxmox.with(|state| state.add_foreign_vm(theirs, "pve1", "theirs"));
    let theirs = theirs.to_string();

    // What is deleted is destroyed, with its seed.
    fleet.delete("MachineClaim", "one").await;
    assert_eq!(fleet.machines(), ([theirs.clone()].into(), 0));
    let events = fleet.events("MachineClaim", "one").await;
    assert!(events.contains("Ready") && events.contains("Destroying"), "{events:?}");

    // The guest agent does without an image, with one privilege more.
    fleet.proxmox.with(|state| state.grant("fleet@pve!virtpilot", "/pool/virtpilot", &["VM.GuestAgent.Unrestricted"]));
    fleet.proxmox.with(|state| state.grant("fleet@pve", "/pool/virtpilot", &["VM.GuestAgent.Unrestricted"]));
    let mut spec = fleet_site::template_spec("pve");
    spec["cloudInit"] = json!({"userData": "#cloud-config\npackages: [git]\n", "delivery": "GuestAgent"});
    fleet.apply("HypervisorMachineTemplate", "by-agent", spec).await;
    fleet.apply("MachineClaim", "agent", json!({"templateRef": {"name": "by-agent"}})).await;
    let status = fleet.ready_claim("agent").await;
    let id: u32 = status["vmRef"]["vmId"].as_str().unwrap().parse().unwrap();
    let guest = fleet.proxmox.with(|state| state.vm(id).unwrap().guest.clone());
    assert!(guest.files["/var/lib/cloud/seed/nocloud/user-data"].contains("\"git\""), "{:?}", guest.files);
    assert!(status["seededTime"].is_string() && fleet.machines().1 == 0, "{status:#}");
    fleet.delete("MachineClaim", "agent").await;
    fleet.delete("HypervisorMachineTemplate", "by-agent").await;

    // A pool keeps two machines: one that switches itself off is replaced.
    fleet
        .apply(
            "RunnerPool",
            "pool",
            json!({"templateRef": {"name": "linux"}, "scaling": {"minReplicas": 2, "maxReplicas": 3}}),
        )
        .await;
    let two = |status: &Value| status["readyReplicas"] == 2 && status["replicas"] == 2;
    fleet.status("RunnerPool", "pool", "two machines", two).await;
    let before = fleet.machines().0;
    assert_eq!(before.len(), 3);
    let gone = before.iter().find(|id| **id != theirs).unwrap();
    fleet.proxmox.with(|state| state.power_off(gone.parse().unwrap()));
    eventually_within(LONG, "the machine is replaced", async || {
        let now = fleet.machines().0;
        (now.len() == 3 && !now.contains(gone)).then_some(())
    })
    .await;
    fleet.status("RunnerPool", "pool", "two machines again", two).await;

    // Whoever deletes the hypervisor first has to wait, and is told for whom.
    fleet.api("HypervisorCluster").delete("pve", &DeleteParams::default()).await.unwrap();
    let in_use = |status: &Value| {
        status["conditions"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "InUse"))
    };
    let status = fleet.status("HypervisorCluster", "pve", "InUse", in_use).await;
    assert!(status.to_string().contains("it is deleted when these claims are gone: ci/pool-"), "{status:#}");
    fleet.delete("RunnerPool", "pool").await;
    for (kind, name) in [("HypervisorMachineTemplate", "linux"), ("HypervisorCluster", "pve")] {
        let _ = fleet.api(kind).delete(name, &DeleteParams::default()).await;
        eventually_within(LONG, &format!("{kind} is gone"), async || {
            fleet.api(kind).get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }
    assert_eq!(fleet.machines(), ([theirs].into(), 0), "only the machine of somebody else is left");
    assert_eq!(fleet.denied(), Vec::<String>::new());
    let (shown, (_, secret)) = (fleet.shown().await, fleet.token());
    assert!(shown.contains("MachineClaim ci/one") && !shown.contains(&secret), "a secret is shown");
    assert_eq!(fleet.process.take().unwrap().terminate(), Some(0));
}

/// P1 and P23: a Secret may come from anywhere, later than the object that names it, and may change.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_a_condition_with_a_remedy_and_right_ones_take_effect_without_a_restart() {
    let mut fleet = Fleet::install(Timing::short(), "").await;
    fleet.restart();
    let (id, secret) = fleet.token();
    fleet.connect().await;
    // A right that is missing.
    let message = fleet.reason("HypervisorCluster", "pve", "ConfigurationError").await;
    let grant = "virtpilot rbac --product fleet --namespace virtpilot-fleet --fleet-secrets ci/pve-token";
    assert!(message.contains(&format!("let the fleet read it: {grant} | kubectl apply -f -")), "{message}");
    assert!(message.contains("credentials.tokenId of HypervisorCluster ci/pve"), "{message}");
    let file = fleet.playground.folder().join("rights.yaml");
    let arguments: Vec<&str> = grant.split(' ').skip(1).collect();
    std::fs::write(&file, succeed(&mut virtpilot(&arguments)).0).unwrap();
    let kubectl = || Command::new(fleet.playground.folder().join("kubectl"));
    succeed(kubectl().args(["apply", "--server-side", "--filename"]).arg(&file));
    let more = succeed(&mut virtpilot(&["rbac", "--product=fleet", "--fleet-secrets=ci/pve-ca"])).0;
    std::fs::write(&file, more).unwrap();
    succeed(kubectl().args(["apply", "--server-side", "--filename"]).arg(&file));

    // A Secret that is missing, a key that is missing, a wrong secret, and the right one.
    let says = async |part: &str| {
        let status = fleet.status("HypervisorCluster", "pve", part, |status| {
            ready(status)["message"].as_str().is_some_and(|message| message.contains(part))
        });
        ready(&status.await)["reason"].clone()
    };
    assert_eq!(
        says("does not exist; create it: kubectl create secret generic pve-token --namespace ci").await,
        "ConfigurationError"
    );
    fleet.secret("pve-token", json!({"id": id})).await;
    assert_eq!(
        says("there is no key \"secret\" (credentials.tokenSecret of HypervisorCluster ci/pve); add the key").await,
        "ConfigurationError"
    );
    fleet.secret("pve-token", json!({"id": id, "secret": "33333333-3333-4333-8333-333333333333"})).await;
    let status = fleet.status("HypervisorCluster", "pve", "a refused login", |status| {
        ready(status)["message"].as_str().is_some_and(|message| message.contains("401"))
    });
    let condition = ready(&status.await);
    assert_eq!(condition["reason"], "ConfigurationError", "{condition:#}");
    fleet.secret("pve-token", json!({"id": id, "secret": format!("{secret}\n")})).await;
    fleet.reason("HypervisorCluster", "pve", "ConnectionSuccessful").await;
    let shown = fleet.shown().await;
    assert!(!shown.contains(&secret) && !shown.contains("33333333-3333"), "a secret is shown");
    // Before it was granted.
    let denied = fleet.denied();
    assert!(!denied.is_empty() && denied.iter().all(|request| request.contains(" secrets ")), "{denied:?}");

    // A privilege that is missing is named.
    fleet.proxmox.with(|state| {
        state.revoke("fleet@pve!virtpilot", "VM.Clone");
        state.revoke("fleet@pve", "VM.Clone");
    });
    // Another version of a Secret leads to a check.
    fleet.secret("pve-token", json!({"id": id, "secret": secret, "note": "rotated"})).await;
    let message = fleet.reason("HypervisorCluster", "pve", "MissingPrivileges").await;
    assert!(message.contains("VM.Clone"), "{message}");
    let checked = virtpilot(&["fleet", "check"]).env("KUBECONFIG", fleet.playground.kubeconfig()).output().unwrap();
    let shown = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{shown}");
    let fix = "pveum acl modify /pool/virtpilot --roles ROLE --users USER";
    assert!(
        shown.contains("ci/pve: FAIL: missing privilege: VM.Clone on /pool/virtpilot") && shown.contains(fix),
        "{shown}"
    );
    assert!(!shown.contains(&secret), "a secret is shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_during_a_clone_leaves_one_machine_for_each_claim() {
    let slow = Timing { linked_clone: Duration::from_secs(2), full_clone: Duration::from_secs(2), ..Timing::short() };
    let mut fleet = Fleet::start(slow).await;
    fleet.reason("HypervisorCluster", "pve", "ConnectionSuccessful").await;
    let claims = ["one", "two", "three"];
    for name in claims {
        fleet.claim(name).await;
    }
    eventually("a clone runs", async || fleet.proxmox.with(is_cloning).then_some(())).await;
    fleet.restart();
    assert!(fleet.proxmox.with(is_cloning), "the clone goes on without the operator");
    let mut ids = BTreeSet::new();
    for name in claims {
        ids.insert(fleet.ready_claim(name).await["vmRef"]["vmId"].as_str().unwrap().to_owned());
    }
    assert_eq!((ids.len(), fleet.machines().0, fleet.clones()), (3, ids.clone(), 3));
    for name in claims {
        fleet.api("MachineClaim").delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in claims {
        eventually_within(LONG, &format!("{name} is gone"), async || {
            fleet.api("MachineClaim").get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }
    assert_eq!(fleet.machines(), (BTreeSet::new(), 0));
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_follows_during_a_clone_goes_on_with_the_same_machine() {
    let slow = Timing { linked_clone: Duration::from_secs(2), full_clone: Duration::from_secs(2), ..Timing::short() };
    let mut fleet = Fleet::start(slow).await;
    fleet.reason("HypervisorCluster", "pve", "ConnectionSuccessful").await;
    let (_second, port) = fleet.replica("virtpilot-fleet-1");
    eventually("it waits", async || readiness(port).filter(|text| text.contains("standby"))).await;
    fleet.claim("one").await;
    eventually("a clone runs", async || fleet.proxmox.with(is_cloning).then_some(())).await;
    assert_eq!(fleet.process.take().unwrap().terminate(), Some(0));
    let status = fleet.ready_claim("one").await;
    assert_eq!(fleet.machines().0, [status["vmRef"]["vmId"].as_str().unwrap().to_owned()].into());
    assert_eq!(fleet.clones(), 1);
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_changed_loses_no_machine() {
    let fleet = Fleet::start(Timing::short()).await;
    fleet.claim("one").await;
    fleet.ready_claim("one").await;
    let machines = fleet.machines().0;
    let other = ProxmoxStandIn::start(&Options::for_test()).unwrap_or_else(|error| panic!("{error}"));
    let point_to = async |endpoint: &str| {
        let patch = json!({"spec": {"endpoint": endpoint}});
        fleet.api("HypervisorCluster").patch("pve", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    };
    point_to(&other.address).await;
    let message = fleet.reason("HypervisorCluster", "pve", "EndpointChanged").await;
    assert!(message.contains(&fleet.proxmox.address) && message.contains("same-hypervisor"), "{message}");

    // There, the machine would look as if it were gone.
    fleet.api("MachineClaim").delete("one", &DeleteParams::default()).await.unwrap();
    let waits = |status: &Value| ready(status)["reason"] == "CleanupFailed";
    let status = fleet.status("MachineClaim", "one", "CleanupFailed", waits).await;
    assert!(
        ready(&status)["message"].as_str().unwrap().contains("the endpoint of HypervisorCluster ci/pve was changed")
    );
    assert_eq!(fleet.machines().0, machines);
    assert_eq!(other.count(Method::Get, "/qemu/"), 0, "the other hypervisor is not asked for machines");

    point_to(&fleet.proxmox.address).await;
    eventually_within(LONG, "the claim is gone", async || {
        fleet.api("MachineClaim").get_opt("one").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(fleet.machines(), (BTreeSet::new(), 0));
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

/// Whether the hypervisor is cloning.
fn is_cloning(state: &mut StandIn) -> bool {
    state.tasks().values().any(|task| task.kind == "qmclone" && task.is_running())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_namespace_the_fleet_says_what_to_do_and_ends() {
    let playground = playground().await;
    // The role for a namespace that is not there, of an account that is elsewhere.
    let account = playground.account("default", "lost").await.unwrap();
    let role = succeed(&mut virtpilot(&["rbac", "--product=fleet", "--namespace=elsewhere"])).0;
    let all: Vec<Value> = serde_saphyr::from_multiple(&role).unwrap();
    let role = all.iter().find(|object| object["kind"] == "ClusterRole").unwrap();
    let name = role["metadata"]["name"].as_str().unwrap();
    let roles = objects(&playground, "rbac.authorization.k8s.io/v1", "ClusterRole", None);
    roles.patch(name, &PatchParams::apply("admin"), &Patch::Apply(role)).await.unwrap();
    let bind = ["create", "clusterrolebinding", "lost", "--serviceaccount=default:lost", "--clusterrole", name];
    succeed(Command::new(playground.folder().join("kubectl")).args(bind));
    let mut command = virtpilot(&[
        "run",
        "--products=fleet",
        "--namespace=elsewhere",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]);
    let output = command.arg("--kubeconfig").arg(&account.kubeconfig).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{error}");
    assert!(
        error.contains("there is no namespace elsewhere") && error.contains("virtpilot manifests --products fleet"),
        "{error}"
    );
    assert_eq!(denied(&playground, "default/lost"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_waits_for_its_kinds_and_begins_when_they_are_served() {
    let playground = playground().await;
    let kubectl = || Command::new(playground.folder().join("kubectl"));
    succeed(kubectl().args(["create", "namespace", HOME]));
    let file = playground.folder().join("fleet.yaml");
    let apply = |arguments: &[&str]| {
        std::fs::write(&file, succeed(&mut virtpilot(arguments)).0).unwrap();
        succeed(kubectl().args(["apply", "--server-side", "--filename"]).arg(&file));
    };
    // Its role is there before its kinds are.
    apply(&["rbac", "--product=fleet"]);
    let (port, account) = (free_port(), playground.account(HOME, HOME).await.unwrap());
    let mut command = virtpilot(&["run", "--products=fleet", "--namespace", HOME, "--metrics-bind-address=0"]);
    command.arg(format!("--health-probe-bind-address=127.0.0.1:{port}")).arg("--kubeconfig").arg(&account.kubeconfig);
    let mut process = Process::of(&mut command);
    eventually("the fleet has asked what is served", async || readiness(port).filter(|text| text.contains(" 200 ")))
        .await;
    apply(&["manifests", "--products=fleet", "--create-namespace"]);
    let api = objects(&playground, "hyperfleet.io/v1alpha1", "RunnerPool", Some(HOME));
    let pool = json!({"apiVersion": "hyperfleet.io/v1alpha1", "kind": "RunnerPool", "metadata": {"name": "p"}, "spec": {"templateRef": {"name": "t"}}});
    eventually("the pool is accepted", async || {
        api.patch("p", &PatchParams::apply("admin"), &Patch::Apply(&pool)).await.ok()
    })
    .await;
    eventually("the pool has a status", async || {
        let pool = api.get("p").await.unwrap();
        (pool.data["status"]["observedGeneration"] == 1).then_some(())
    })
    .await;
    assert!(process.is_alive());
    assert_eq!(process.terminate(), Some(0));
    assert_eq!(denied(&playground, &format!("{HOME}/{HOME}")), Vec::<String>::new());
}

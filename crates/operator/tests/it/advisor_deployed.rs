//! The advisor as its own deployment runs it: with nothing but its role every profile is applied, with its own lease, and with no status
//! write that shows nothing new; the guide is followed as one script.

use crate::operator::{NAMESPACE, Process, eventually, playground_of};
use crate::packages::{deploy, succeed};
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use playground::audit::{Mark, Request};
use playground::deployment::objects;
use playground::service_account::Account;
use playground::{Playground, Scene, Timing};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NAME: &str = "virt-advisor-operator";
const LEASES: [&str; 2] = ["virt-advisor-operator.kubevirt.io", "virt-platform-autopilot.kubevirt.io"];

/// A cluster on which the advisor is installed alone.
struct Cluster {
    playground: Playground,
    account: Account,
}

impl Cluster {
    async fn start() -> Cluster {
        let playground = playground_of(Scene { workers: 2, ..Scene::preset("small").unwrap() }).await;
        let folder = deploy("kustomize/advisor-alone");
        let mut kubectl = Command::new(playground.folder().join("kubectl"));
        succeed(kubectl.args(["apply", "--kustomize", folder.to_str().unwrap()]));
        let account = playground.account(NAMESPACE, NAME).await.unwrap();
        Cluster { playground, account }
    }

    /// Runs the container of the Deployment on this machine.
    async fn run(&self, pod: &str) -> Process {
        let deployments = objects(&self.playground, "apps/v1", "Deployment", Some(NAMESPACE));
        let deployment = deployments.get(NAME).await.unwrap();
        let arguments = &deployment.data["spec"]["template"]["spec"]["containers"][0]["args"];
        let arguments = arguments.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
        let arguments: Vec<String> = arguments.map(|text| text.replace("$(POD_NAMESPACE)", NAMESPACE)).collect();
        process(pod, &self.account.kubeconfig, &arguments)
    }

    fn profiles(&self) -> Api<DynamicObject> {
        objects(&self.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None)
    }

    async fn ask(&self, name: &str, spec: &Value) {
        let patch = json!({"spec": spec});
        self.profiles().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// The status of a profile, once it fits and is about the present spec.
    async fn status(&self, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let last = std::sync::Mutex::new(Value::Null);
        let found = tokio::time::timeout(Duration::from_secs(40), async {
            loop {
                let object = self.profiles().get(name).await.unwrap();
                let status = object.data["status"].clone();
                if status["observedGeneration"].as_i64() == object.metadata.generation && fits(&status) {
                    return status;
                }
                *last.lock().unwrap() = status;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("{name} never gets {what}: {:#}", last.lock().unwrap()))
    }

    /// All that profiles applied goes, but for what holds data: that is never planned to be deleted.
    async fn roll_back_every_profile(&self) {
        for profile in &crate::catalogue::catalogue().profiles {
            let name = profile.name.as_str();
            self.ask(name, &json!({"action": "DryRun", "rollback": true})).await;
            let status = self.status(name, "a rollback", |status| status["phase"] == "ReviewRequired").await;
            let deleted = status["items"].as_array().unwrap().iter().filter(|item| item["operation"] == "Delete");
            for item in deleted {
                let kind = item["targetRef"]["kind"].as_str().unwrap();
                assert!(!api::NEVER_REMOVED.contains(&kind), "{name}: {item:#}");
            }
            self.ask(name, &json!({"action": "Apply", "approvedPlan": status["planDigest"]})).await;
            self.status(name, "rolled back", |status| status["phase"] == "Completed").await;
        }
        let stores = objects(&self.playground, "loki.grafana.com/v1", "LokiStack", Some("openshift-logging"));
        assert!(stores.get_opt("logging-loki").await.unwrap().is_some(), "it holds logs");
    }

    /// Who holds each of the leases.
    async fn holders(&self) -> [Option<String>; 2] {
        let leases: Api<Lease> = Api::namespaced(self.playground.client(), NAMESPACE);
        let mut holders = [None, None];
        for (holder, name) in holders.iter_mut().zip(LEASES) {
            let lease = leases.get_opt(name).await.unwrap().and_then(|lease| lease.spec?.holder_identity);
            *holder = lease.filter(|holder| !holder.is_empty());
        }
        holders
    }

    async fn is_held_by(&self, holders: [Option<&str>; 2]) {
        let wanted = holders.map(|holder| holder.map(str::to_owned));
        eventually(&format!("leases of {wanted:?}"), async || (self.holders().await == wanted).then_some(())).await;
    }
}

/// Every status that the server had.
#[derive(Clone, Default)]
struct Statuses(Arc<Mutex<BTreeMap<String, Vec<Value>>>>);

impl Statuses {
    async fn watch(cluster: &Cluster) -> Statuses {
        let (statuses, profiles) = (Statuses::default(), cluster.profiles());
        eventually("the kind is served", async || profiles.list(&Default::default()).await.ok()).await;
        let events = profiles.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
        let seen = statuses.clone();
        tokio::spawn(async move {
            let mut events = events.boxed();
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                    let name = object.metadata.name.unwrap();
                    seen.0.lock().unwrap().entry(name).or_default().push(object.data["status"].clone());
                }
            }
        });
        statuses
    }

    /// How often the phase or an item changed, or the spec that they are about, of each profile.
    fn changes(&self) -> BTreeMap<String, usize> {
        let shown = |status: &Value| json!([status["phase"], status["items"], status["observedGeneration"]]);
        let count = |all: &Vec<Value>| {
            let mut all: Vec<Value> = all.iter().map(shown).filter(|shown| !shown[0].is_null()).collect();
            all.dedup();
            all.len()
        };
        self.0.lock().unwrap().iter().map(|(name, all)| (name.clone(), count(all))).collect()
    }
}

fn process(pod: &str, kubeconfig: &Path, arguments: &[String]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(arguments).args(["--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig"]);
    Process::of(command.arg(kubeconfig).env("POD_NAME", pod).env("LOG_LEVEL", "info"))
}

/// Options with which most items apply.
fn options(profile: &str) -> Option<Value> {
    match profile {
        "host-performance" => Some(json!({"hostPerformance": {"disableNumaBalancing": true}})),
        "observability" => {
            let logs =
                json!({"deschedulerDashboard": true, "logging": true, "auditLogs": true, "logStorageClass": "fast"});
            Some(json!({"observability": logs}))
        }
        _ => None,
    }
}

/// The commands of the walk-through in the guide as one script, and the lines that they are said to print.
fn walk_through() -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/advisor.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, section) = page.split_once("\n## Walk through it\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let (mut script, mut printed) = (String::new(), Vec::new());
    for block in section.split("\n```").skip(1).step_by(2) {
        let mut is_document = false;
        for line in block.lines().skip(1) {
            let command = line.strip_prefix("$ ");
            if let Some(text) = command.or(is_document.then_some(line)) {
                script.push_str(&format!("{text}\n"));
                is_document = (is_document && line != "END") || text.ends_with("<<'END'");
            } else if line != "..." {
                printed.push(line.trim_end_matches("...").to_owned());
            }
        }
    }
    (script, printed)
}

/// Runs a script as a reader types it; what it prints.
fn run_script(cluster: &Cluster, script: &str) -> String {
    // Code 2 says that changes are pending.
    let head = "set -eu\nvirtpilot() { command virtpilot \"$@\" || [ $? -eq 2 ]; }\n";
    let binaries = Path::new(env!("CARGO_BIN_EXE_virtpilot")).parent().unwrap();
    let path = std::env::join_paths(
        [cluster.playground.folder(), binaries]
            .into_iter()
            .map(Path::to_path_buf)
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{head}{script}")]).env("PATH", path.unwrap());
    succeed(command.env("KUBECONFIG", cluster.playground.kubeconfig())).0
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_own_role_the_advisor_applies_every_profile_and_its_guide_is_followed_as_one_script() {
    let cluster = Cluster::start().await;
    let seen = Statuses::watch(&cluster).await;
    let _stand_in = cluster.playground.start_machine_config_operator(Timing::short()).await.unwrap();
    let own = format!("system:serviceaccount:{NAMESPACE}:{NAME}");
    let advisor = cluster.run("advisor-0").await;
    cluster.is_held_by([Some("advisor-0"), None]).await;

    // What the guide says, from the first command to the last.
    let (script, printed) = walk_through();
    assert!(script.lines().count() > 15 && printed.len() >= 3, "{script}\n{printed:?}");
    let output = run_script(&cluster, &script);
    for line in printed {
        assert!(output.contains(&line), "{line:?} is not in\n{output}");
    }
    let status = cluster.status("example-profile", "rolled back", |status| status["phase"] == "Completed").await;
    assert_eq!(status["rollback"], true);
    let maps = objects(&cluster.playground, "v1", "ConfigMap", Some(NAMESPACE));
    assert!(maps.get_opt("example-config").await.unwrap().is_none(), "the profile created it");

    // Logging needs a binding of its own.
    let account = format!("--serviceaccount={NAMESPACE}:{NAME}");
    for arguments in [
        vec!["apply", "--filename", deploy("rbac/logging.yaml").to_str().unwrap()],
        vec![
            "create",
            "clusterrolebinding",
            "logging-of-advisor",
            "--clusterrole=virt-platform-autopilot-logging",
            &account,
        ],
    ] {
        let mut kubectl = Command::new(cluster.playground.folder().join("kubectl"));
        succeed(kubectl.env("KUBECONFIG", cluster.playground.kubeconfig()).args(arguments));
    }

    // Every profile, one after the other.
    let mut applied = Vec::new();
    for profile in &crate::catalogue::catalogue().profiles {
        let name = profile.name.as_str();
        let mut patch = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": name}, "spec": {"profile": name, "action": "DryRun", "rollback": false}});
        if let Some(options) = options(name) {
            patch["spec"]["options"] = options;
        }
        let params = PatchParams::apply("admin").force();
        cluster.profiles().patch(name, &params, &Patch::Apply(&patch)).await.unwrap();
        let phases = ["ReviewRequired", "Completed", "PrerequisiteFailed", "Failed"];
        let status = cluster.status(name, "a plan", |status| phases.contains(&status["phase"].as_str().unwrap())).await;
        println!("{name}: {} {}", status["phase"], status["conditions"][0]["message"]);
        assert_eq!(status["phase"], "ReviewRequired", "{name}: {status:#}");
        cluster.ask(name, &json!({"action": "Apply", "approvedPlan": status["planDigest"]})).await;
        let status = cluster.status(name, "Completed", |status| status["phase"] == "Completed").await;
        for planned in status["items"].as_array().unwrap() {
            assert!(planned["appliedTime"].is_string(), "{planned:#}");
            applied.push(format!("{name}/{}", planned["name"].as_str().unwrap()));
        }
    }
    println!("{} items were applied: {applied:?}", applied.len());
    assert!(applied.contains(&"observability/store-logs".to_owned()), "{applied:?}");
    cluster.roll_back_every_profile().await;

    // The account was enough, and nothing was written that showed nothing new.
    let requests = cluster.playground.audit_log().since(Mark::BEGINNING).unwrap();
    let requests: Vec<_> = requests.0.iter().filter(|request| request.user == own).collect();
    let refused: Vec<_> = requests.iter().filter(|request| [401, 403].contains(&request.code)).collect();
    assert!(refused.is_empty(), "{refused:#?}");

    for (name, changes) in seen.changes() {
        let is_write =
            |request: &&&Request| request.resource.starts_with("virtplatformconfigs/status") && request.name == name;
        let writes = requests.iter().filter(is_write).filter(|request| request.code == 200).count();
        println!("{name}: {writes} status writes, {changes} changes of phase or items");
        assert!(writes <= changes, "{name}: {writes} status writes for {changes} changes");
    }

    // A process of both products has two leases, and takes the advisor's when its holder goes.
    let arguments = ["run", "--leader-elect", "--products=autopilot,advisor"].map(str::to_owned);
    let both = process("both-0", &cluster.playground.kubeconfig(), &arguments);
    cluster.is_held_by([Some("advisor-0"), Some("both-0")]).await;
    assert_eq!(advisor.terminate(), Some(0));
    cluster.is_held_by([Some("both-0"), Some("both-0")]).await;
    cluster.ask("example-profile", &json!({"action": "DryRun", "rollback": false})).await;
    cluster.status("example-profile", "a plan", |status| status["phase"] == "ReviewRequired").await;
    assert_eq!(both.terminate(), Some(0));
    cluster.is_held_by([None, None]).await;
}

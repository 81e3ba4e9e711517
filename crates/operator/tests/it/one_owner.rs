//! Every object has one owner: what a VirtPlatformConfig governs the operator leaves alone, and handing over writes nothing that agrees.

use crate::advisor::{self, Advised};
use crate::commands::virtpilot;
use crate::crds::install;
use crate::operator::{NAMESPACE, Process, Running, SERVICE, SMALL, SMALL_ROLE, edit, eventually, quiet};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use playground::audit::{Kind, Mark};
use playground::{Scene, deployment};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A profile of the published CRD that has one object of the small pack.
const PROFILE: &str = "name: virt-higher-density\ncategory: density\ndescription: D.\nimpact_summary: I.\nadvertised: false\n\
    items:\n  - {name: metrics, description: The Service of the metrics., asset: metrics-service}\n";
const DENSITY: &str = "virt-higher-density";
/// The profile is ignored, and its objects are given to the autopilot.
const HANDED_OVER: &str = "handed over";

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A cluster, the operator with a pack that has the profile, and the Service that it wants.
struct Bed {
    running: Running,
    pack: String,
    wanted: Value,
}

impl Bed {
    async fn start() -> Bed {
        let mut running = Running::on(Scene::preset("small").unwrap(), SMALL_ROLE, &[]).await;
        let pack = running.playground.folder().join("pack");
        copy(Path::new(SMALL), &pack);
        std::fs::create_dir_all(pack.join("profiles")).unwrap();
        std::fs::write(pack.join(format!("profiles/{DENSITY}.yaml")), PROFILE).unwrap();
        let pack = pack.to_string_lossy().into_owned();
        // The test plays the advisor.
        running.add_argument("--products=autopilot");
        running.add_argument("--assets-dir");
        running.add_argument(&pack);
        let arguments = ["render", "--output=json", "--assets-dir", &pack];
        let output = virtpilot(Some(&running.playground.kubeconfig()), &arguments);
        let all: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
        let found = all.as_array().unwrap().iter().find(|one| one["asset"] == "metrics-service").unwrap();
        let wanted = found["object"].clone();
        running.restart();
        Bed { running, pack, wanted }
    }

    fn configs(&self) -> Api<DynamicObject> {
        deployment::objects(&self.running.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None)
    }

    /// Somebody says who governs the Service.
    async fn govern(&self, action: &str) {
        let spec = match action {
            HANDED_OVER => json!({"profile": DENSITY, "action": "Ignore", "handOver": true}),
            action => json!({"profile": DENSITY, "action": action}),
        };
        let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": DENSITY}, "spec": spec});
        self.configs().patch(DENSITY, &PatchParams::apply("admin"), &Patch::Apply(config)).await.unwrap();
    }

    async fn version(&self) -> Option<String> {
        self.running.services().get(SERVICE).await.unwrap().metadata.resource_version
    }

    /// The advisor applies the Service as the pack renders it, with this selector.
    async fn advise(&self, app: &str) {
        let mut object = self.wanted.clone();
        object["metadata"]["annotations"] = json!({"advisor.kubevirt.io/profile": DENSITY});
        object["spec"]["selector"]["app"] = json!(app);
        let params = PatchParams::apply(api::advisor::FIELD_MANAGER).force();
        self.running.services().patch(SERVICE, &params, &Patch::Apply(object)).await.unwrap();
    }

    /// How often the operator asked to write the Service since a mark.
    fn writes(&self, since: Mark) -> usize {
        let own = self.running.own(&self.running.audit().since(since).unwrap()).of(Kind::Write);
        own.0.iter().filter(|request| request.name == SERVICE).count()
    }

    /// The verbs of the operator's requests about VirtPlatformConfigs since a mark.
    fn asked(&self, since: Mark) -> Vec<String> {
        let own = self.running.own(&self.running.audit().since(since).unwrap());
        let about = own.0.iter().filter(|request| request.resource.starts_with("virtplatformconfigs"));
        about.map(|request| request.verb.clone()).collect()
    }

    /// State and reason of the Service, as `status` shows them.
    fn status(&self) -> (String, String) {
        let arguments = ["status", "--evaluate", "--output=json", "--assets-dir", &self.pack];
        let output = virtpilot(Some(&self.running.playground.kubeconfig()), &arguments);
        let all: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
        let line = all["assets"].as_array().unwrap().iter().find(|line| line["asset"] == "metrics-service").unwrap();
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        (text("state"), text("why"))
    }

    async fn becomes(&self, app: &str) {
        eventually(&format!("the selector is {app}"), async || {
            let found = self.running.services().get(SERVICE).await.ok()?;
            (found.data["spec"]["selector"]["app"] == app).then_some(())
        })
        .await;
    }

    async fn events(&self, reason: &str, times: usize) -> String {
        eventually(&format!("{times} events {reason}"), async || {
            let mut notes = self.running.events(reason).await;
            notes.retain(|note| note.contains(SERVICE));
            (notes.len() == times).then(|| notes.pop()).flatten()
        })
        .await
    }
}

const LOAD_AWARE: &str = "load-aware-rebalancing";
const FORMER_PSI: &str = "99-worker-psi-karg";
const OURS: &str = "virt-platform-autopilot";

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_handed_over_and_back_without_a_write_while_it_is_as_wanted() {
    let mut bed = Bed::start().await;
    eventually("it exists", async || bed.running.services().get_opt(SERVICE).await.unwrap()).await;
    quiet(&bed.running).await;
    assert_eq!(bed.asked(Mark::BEGINNING), [""; 0], "the kind is not served");
    install(&bed.running.playground, &catalog::profile::crd(&crate::catalogue::catalogue().profiles)).await;
    eventually("it is watched", async || bed.asked(Mark::BEGINNING).contains(&"watch".to_owned()).then_some(())).await;
    assert_eq!(bed.asked(Mark::BEGINNING), ["list", "watch"]);

    // To the advisor and back, and nobody has written anything.
    let (mark, version) = (bed.running.audit().mark().unwrap(), bed.version().await);
    bed.govern("DryRun").await;
    let note = bed.events("Governed", 1).await;
    let why = "governed by VirtPlatformConfig virt-higher-density; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true";
    assert_eq!(note, format!("Service {NAMESPACE}/{SERVICE}: {why}"));
    assert_eq!(bed.status(), ("Governed".to_owned(), why.to_owned()));
    bed.govern(HANDED_OVER).await;
    eventually("it is given back", async || (bed.status().0 == "InSync").then_some(())).await;
    quiet(&bed.running).await;
    assert_eq!((bed.writes(mark), bed.version().await), (0, version));

    // What somebody changes is corrected only while the autopilot governs it.
    bed.govern("Apply").await;
    bed.events("Governed", 2).await;
    edit(&bed.running.services(), SERVICE, json!({"spec": {"selector": {"app": "edited"}}})).await;
    quiet(&bed.running).await;
    assert_eq!(bed.writes(mark), 0);
    bed.configs().delete(DENSITY, &DeleteParams::default()).await.unwrap();
    bed.becomes(OURS).await;
    assert_eq!(bed.writes(mark), 1);

    // What the advisor changed is taken back when it governs no more, although it has applied it.
    bed.govern("Apply").await;
    bed.events("Governed", 3).await;
    bed.advise("advised").await;
    quiet(&bed.running).await;
    assert_eq!(bed.writes(mark), 1);
    // Who wants everything to be left alone is not surprised by the autopilot.
    bed.govern("Ignore").await;
    quiet(&bed.running).await;
    assert_eq!((bed.writes(mark), bed.status().0.as_str()), (1, "Governed"));
    bed.govern(HANDED_OVER).await;
    bed.becomes(OURS).await;
    let note = bed.events("TakenOver", 1).await;
    assert!(
        note.contains("taken over from the advisor, which governs it no more. Changed: .spec.selector.app"),
        "{note}"
    );
    quiet(&bed.running).await;
    assert_eq!((bed.writes(mark), bed.status().0.as_str()), (2, "InSync"));

    // An object that the advisor made as it is wanted is in sync without a write, also for an operator that starts.
    bed.govern("Apply").await;
    bed.events("Governed", 4).await;
    bed.running.services().delete(SERVICE, &DeleteParams::default()).await.unwrap();
    bed.advise(OURS).await;
    quiet(&bed.running).await;
    let version = bed.version().await;
    bed.govern(HANDED_OVER).await;
    eventually("it is given back", async || (bed.status().0 == "InSync").then_some(())).await;
    quiet(&bed.running).await;
    let restarted = bed.running.audit().mark().unwrap();
    bed.running.restart();
    eventually("it is watched again", async || bed.asked(restarted).contains(&"watch".to_owned()).then_some(())).await;
    quiet(&bed.running).await;
    assert_eq!((bed.writes(mark), bed.version().await), (2, version));
    assert_eq!(bed.asked(restarted), ["list", "watch"]);
}

/// The state of an asset in the report that the autopilot publishes.
async fn reported(advised: &Advised, asset: &str) -> Option<String> {
    let maps = deployment::objects(&advised.playground, "v1", "ConfigMap", Some(NAMESPACE));
    let map = maps.get_opt(api::STATUS).await.ok()??;
    let report: Value = serde_json::from_str(map.data["data"]["status.json"].as_str()?).ok()?;
    let line = report["assets"].as_array()?.iter().find(|line| line["asset"] == asset)?;
    line["state"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_products_run_on_one_cluster_and_what_the_advisor_rolled_out_is_given_to_the_autopilot_without_a_write() {
    let advised = Advised::start(3).await;
    // What the Go advisor made, under its own name.
    let psi = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": FORMER_PSI, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": ["psi=1"]}});
    let params = PatchParams::apply(api::advisor::FIELD_MANAGER);
    advised.machine_configs().patch(FORMER_PSI, &params, &Patch::Apply(psi)).await.unwrap();
    let stand_in = advised.machine_config_operator().await;
    advised.review_and_apply(LOAD_AWARE, json!({})).await;
    let planned = advised.phase(LOAD_AWARE, "Completed").await;
    assert_eq!(advisor::item(&planned, "enable-psi-metrics")["targetRef"]["name"], FORMER_PSI, "{planned:#}");
    let nodes = ["worker-0", "worker-1", "worker-2"];
    let restarts = nodes.map(|node| stand_in.restarts(node));
    advised.review_and_apply(advisor::DENSITY, json!({})).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(["run", "--products=autopilot", "--metrics-bind-address=0", "--health-probe-bind-address=0"]);
    command.arg("--kubeconfig").arg(advised.playground.kubeconfig()).env("LOG_LEVEL", "info");
    let _autopilot = Process::of(&mut command);
    let becomes = async |state: &str| {
        eventually(state, async || (reported(&advised, "swap-enable").await? == state).then_some(())).await;
    };
    becomes("Governed").await;
    advised.phase(advisor::DENSITY, "Completed").await;
    assert_eq!(reported(&advised, "swap-enable").await.as_deref(), Some("Governed"));
    let swap = async || advised.machine_configs().get(advisor::SWAP).await.unwrap().metadata;
    let psi = async || advised.machine_configs().get(FORMER_PSI).await.unwrap().metadata.resource_version;
    let (version, former) = (swap().await.resource_version, psi().await);
    // Whoever wants everything to be left alone says only that.
    advised.ask(advisor::DENSITY, json!({"action": "Ignore"})).await;
    let ignored = advised.phase(advisor::DENSITY, "Ignored").await;
    let conditions = ignored["conditions"].as_array().unwrap();
    let said = conditions.iter().find(|condition| condition["type"] == "Ignored").unwrap();
    assert!(said["message"].as_str().unwrap().contains("set spec.handOver to true"), "{said}");
    assert_eq!(reported(&advised, "swap-enable").await.as_deref(), Some("Governed"));
    advised.ask(advisor::DENSITY, json!({"action": "Ignore", "handOver": true})).await;
    advised.ask(LOAD_AWARE, json!({"action": "Ignore", "handOver": true})).await;
    becomes("InSync").await;
    eventually("PSI is in sync", async || (reported(&advised, "psi-enable").await? == "InSync").then_some(())).await;
    assert_eq!(psi().await, former, "it is managed under the name it has");
    let own = "99-openshift-machineconfig-worker-psi-karg";
    assert!(advised.machine_configs().get_opt(own).await.unwrap().is_none(), "it would be a double");
    let given = swap().await;
    assert_eq!(given.resource_version, version);
    let managers: Vec<_> = given.managed_fields.iter().flatten().filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(managers, [api::advisor::FIELD_MANAGER]);
    assert_eq!(nodes.map(|node| stand_in.restarts(node)), restarts.map(|before| before + 1), "for swap");
    let hco = reported(&advised, "hco-golden-config").await;
    assert_eq!(hco.as_deref(), Some("InSync"), "the two have different fields of the HyperConverged");
}

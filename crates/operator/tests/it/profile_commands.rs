//! `plan show`, `plan list`, `approve`, `rollback` and `explain` of a VirtPlatformConfig whose status a stand-in of the advisor wrote.

use crate::commands::{Output, virtpilot_as_given};
use crate::crds::install;
use crate::operator::{Running, eventually};
use catalog::profile;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use playground::deployment;
use serde_json::{Value, json};

const NAME: &str = "load-aware-rebalancing";
const DENSITY: &str = "virt-higher-density";

/// A cluster with the CRD, and the objects of the profiles.
pub(crate) struct Cluster {
    pub(crate) running: Running,
    pub(crate) objects: Api<DynamicObject>,
}

pub(crate) fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

impl Cluster {
    pub(crate) async fn start() -> Cluster {
        let running = Running::without_operator().await;
        install(&running.playground, &profile::crd(&crate::catalogue::catalogue().profiles)).await;
        let objects =
            deployment::objects(&running.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None);
        eventually("the kind is served", async || objects.list(&Default::default()).await.ok()).await;
        // What the server says of its kinds follows later.
        let kubectl = running.playground.folder().join("kubectl");
        eventually("the kind is discovered", async || {
            let listed = std::process::Command::new(&kubectl).args(["get", "virtplatformconfigs"]).output().unwrap();
            let planned = virtpilot_as_given(Some(&running.playground.kubeconfig()), &["plan", "list"]);
            (listed.status.success() && !planned.stderr.contains("does not serve")).then_some(())
        })
        .await;
        Cluster { running, objects }
    }

    pub(crate) async fn apply(&self, name: &str, mut spec: Value) -> DynamicObject {
        spec["profile"] = json!(name);
        let object = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": name}, "spec": spec,
        });
        let params = PatchParams::apply("admin").force();
        self.objects.patch(name, &params, &Patch::Apply(object)).await.unwrap()
    }

    /// Writes a status about the present spec.
    pub(crate) async fn status(&self, name: &str, mut status: Value) {
        let generation = self.objects.get(name).await.unwrap().metadata.generation;
        status["observedGeneration"] = json!(generation);
        let patch = Patch::Merge(json!({"status": status}));
        self.objects.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn spec(&self, name: &str) -> Value {
        self.objects.get(name).await.unwrap().data["spec"].clone()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        virtpilot_as_given(Some(&self.running.playground.kubeconfig()), arguments)
    }

    /// The output of a command that ends with this code.
    fn prints(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {}{}", output.stdout, output.stderr);
        output.stdout
    }

    /// A command that fails with one line that says this.
    fn refuses(&self, arguments: &[&str], why: &str) {
        let output = self.run(arguments);
        assert!(output.code == Some(1) && output.stderr.contains(why), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}

/// The status of a plan that waits for a review.
pub(crate) fn review(digest: &str) -> Value {
    let target =
        json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "name": "99-psi"});
    let item = json!({
        "name": "enable-psi-metrics", "targetRef": target, "operation": "Create", "impactSeverity": "High", "state": "Pending",
        "restarts": ["worker-0", "worker-1"], "takesFrom": ["argocd"], "diff": "+spec:\n+  kernelArguments: [psi=1]\n",
    });
    let condition = json!({
        "type": "ReviewRequired", "status": "True", "lastTransitionTime": "2026-11-17T10:00:00Z", "reason": "ChangesPending",
        "message": "the plan has 1 change",
    });
    json!({
        "phase": "ReviewRequired", "impactSeverity": "High", "planDigest": digest, "conditions": [condition], "items": [item],
        "inputs": [{"name": "hyperconverged.parallelMigrationsPerCluster", "value": "5"}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_and_approved_exactly_as_it_is_shown() {
    let cluster = Cluster::start().await;
    let (first, second) = (digest('a'), digest('b'));
    cluster.refuses(&["plan", "show", NAME], "there is no VirtPlatformConfig load-aware-rebalancing; create one");
    cluster.refuses(&["plan", "show", "load-aware"], "there is no profile \"load-aware\"");
    cluster.apply(NAME, json!({})).await;
    let shown = cluster.prints(2, &["plan", "show", NAME]);
    assert!(shown.contains("Pending, action DryRun") && shown.contains("is of nothing."), "{shown}");
    cluster.refuses(&["approve", NAME, "--digest", &first], "its status is about no generation of the spec");

    cluster.status(NAME, review(&first)).await;
    let shown = cluster.prints(2, &["plan", "show", NAME]);
    for part in [
        "ReviewRequired, action DryRun, high impact\n",
        "the plan has 1 change\n",
        "hyperconverged.parallelMigrationsPerCluster  5\n",
        "1. + MachineConfig 99-psi  create, high impact, Pending\n",
        "restarts 2 nodes: worker-0, worker-1; about 20 min (a guess), no VM has to move\n",
        "takes fields from argocd\n",
        "+  kernelArguments: [psi=1]\n",
        &format!("Plan {first}\nNext: virtpilot approve {NAME} --digest {first}\n"),
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let document: Value = serde_json::from_str(&cluster.prints(2, &["plan", "show", NAME, "-o", "json"])).unwrap();
    assert_eq!((&document["digest"], &document["items"][0]["restarts"][1]), (&json!(first), &json!("worker-1")));
    let yaml: Value = serde_saphyr::from_str(&cluster.prints(2, &["plan", "show", NAME, "-o", "yaml"])).unwrap();
    assert_eq!(yaml, document);

    // Another plan, a name of nothing, and a spec that changed since are refused, and nothing is written.
    let untouched = cluster.spec(NAME).await;
    cluster.refuses(
        &["approve", NAME, "--digest", &second],
        &format!("the plan of {NAME} is not {second} but {first} now, and nothing was approved; read it with \"virtpilot plan show {NAME}\""),
    );
    cluster.refuses(&["approve", DENSITY, "--digest", &first], "there is no VirtPlatformConfig virt-higher-density");
    cluster.refuses(&["approve", "nonsense", "--digest", &first], "there is no profile \"nonsense\"");
    cluster.refuses(&["approve", NAME, "--yes"], &format!("add --digest {first}"));
    cluster.refuses(&["approve", NAME], "there is no terminal to ask on");
    let would = cluster.prints(0, &["approve", NAME, "--dry-run"]);
    assert!(would.ends_with(&format!("would approve {NAME} {first}\n")), "{would}");
    assert_eq!(cluster.spec(NAME).await, untouched);
    let edited = json!({"options": {"loadAware": {"evictionLimitTotal": 7}}});
    cluster.apply(NAME, edited).await;
    cluster.refuses(
        &["approve", NAME, "--digest", &first],
        "about generation 1 of the spec, and the spec has generation 2",
    );
    assert!(
        cluster
            .prints(2, &["plan", "show", NAME])
            .contains("The spec has generation 2, and what is shown is of generation 1.")
    );

    cluster.status(NAME, review(&second)).await;
    let approved = cluster.prints(0, &["approve", NAME, "--digest", &second]);
    assert!(
        approved.starts_with(&format!("approved {NAME} {second}; the advisor applies exactly this plan, what restarts nodes within the maintenance window if there is one\n")),
        "{approved}"
    );
    let spec = cluster.spec(NAME).await;
    assert_eq!((&spec["action"], &spec["approvedPlan"]), (&json!("Apply"), &json!(second)));
    assert_eq!(spec["options"]["loadAware"]["evictionLimitTotal"], 7, "the rest of the spec stays");

    // The approval is a new generation, about which the advisor writes a new status.
    cluster.refuses(&["approve", NAME, "--digest", &second], "the spec has generation 3");
    cluster.status(NAME, review(&second)).await;
    let again = cluster.prints(0, &["approve", NAME, "--digest", &second]);
    assert_eq!(again, format!("{NAME} {second} is already approved; its phase is ReviewRequired\n"));
    let listed = cluster.prints(0, &["plan", "list"]);
    let line = listed.lines().find(|line| line.starts_with(NAME)).unwrap();
    assert!(line.contains("Apply   ReviewRequired  High    bbbbbbbb"), "{listed}");
    assert!(listed.lines().any(|line| line.starts_with("example-profile") && line.contains("not created")), "{listed}");

    let revoked = cluster.prints(0, &["approve", NAME, "--revoke"]);
    assert!(revoked.starts_with(&format!("revoked the approval of {NAME}; ")), "{revoked}");
    let spec = cluster.spec(NAME).await;
    assert_eq!((&spec["action"], spec.get("approvedPlan")), (&json!("DryRun"), None));
    cluster.refuses(&["approve", NAME, "--revoke"], "its action is DryRun");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_without_a_plan_cannot_be_approved_and_its_exit_code_says_how_it_is() {
    let cluster = Cluster::start().await;
    cluster.apply(NAME, json!({"action": "Ignore"})).await;
    cluster.status(NAME, json!({"phase": "Ignored"})).await;
    assert!(
        cluster
            .prints(0, &["plan", "show", NAME])
            .contains("Next: kubectl patch virtplatformconfig load-aware-rebalancing")
    );
    cluster
        .refuses(&["approve", NAME, "--digest", &digest('a')], "its action is Ignore; to plan it, run \"kubectl patch");
    // The command that is shown is one that works.
    let kubectl = cluster.running.playground.folder().join("kubectl");
    let patch = ["patch", "virtplatformconfig", NAME, "--type", "merge", "--patch", r#"{"spec":{"action":"DryRun"}}"#];
    assert!(std::process::Command::new(kubectl).args(patch).status().unwrap().success());
    for (phase, code) in [("Completed", 0), ("Failed", 1), ("PrerequisiteFailed", 1), ("InProgress", 2), ("Drifted", 2)]
    {
        cluster.status(NAME, json!({"phase": phase})).await;
        cluster.prints(code, &["plan", "show", NAME]);
        cluster.refuses(&["approve", NAME, "--digest", &digest('a')], &format!("it has no plan, its phase is {phase}"));
    }
    let mut kept = review(&digest('a'));
    kept["items"][0]["operation"] = json!("Keep");
    cluster.status(NAME, kept).await;
    cluster.refuses(&["approve", NAME, "--digest", &digest('a')], "the plan changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_a_plan_and_objects_name_the_profile_that_governs_them() {
    let cluster = Cluster::start().await;
    cluster.apply(NAME, json!({"action": "Apply", "approvedPlan": digest('a')})).await;
    cluster.status(NAME, review(&digest('a'))).await;

    let explained = cluster.prints(0, &["explain", NAME]);
    for part in
        ["Live-migrates virtual machines", "loadAware.mode: ", "1. + MachineConfig 99-psi", "Next: kubectl wait "]
    {
        assert!(explained.contains(part), "{part:?} is not in\n{explained}");
    }
    let explained = cluster
        .prints(0, &["explain", "machineconfig/99-psi", "VirtPlatformConfig/load-aware-rebalancing", "-o", "json"]);
    let documents: Value = serde_json::from_str(&explained).unwrap();
    let governed = documents.as_array().unwrap().iter().find(|document| document["governedBy"] == NAME).unwrap();
    assert!(governed["why"].as_str().unwrap().contains("governs it, and the autopilot leaves it alone"), "{explained}");
    assert!(documents.as_array().unwrap().iter().any(|document| document["name"] == NAME), "{explained}");
    // An object that the autopilot knows, too.
    let mut both = review(&digest('a'));
    both["items"][0]["targetRef"]["name"] = json!(crate::operator::SWAP);
    cluster.status(NAME, both).await;
    let explained = cluster.prints(0, &["explain", "swap-enable"]);
    assert!(explained.contains("VirtPlatformConfig load-aware-rebalancing governs it"), "{explained}");

    let planned = cluster.prints(0, &["rollback", NAME]);
    assert!(
        planned.contains("nothing is written before an approval\nNext: virtpilot plan show load-aware"),
        "{planned}"
    );
    let spec = cluster.spec(NAME).await;
    let wanted = (&json!("DryRun"), &json!(true), None);
    assert_eq!((&spec["action"], &spec["rollback"], spec.get("approvedPlan")), wanted);
    assert!(cluster.prints(0, &["rollback", NAME]).contains("is planned already"));
    assert!(cluster.prints(2, &["plan", "show", NAME]).contains("action DryRun, rollback, high impact\n"));
    cluster.refuses(&["rollback", "ConfigMap"], "\"ConfigMap\" is no profile; name the kind and the name of an object");
    cluster.refuses(&["rollback", DENSITY], "there is no VirtPlatformConfig virt-higher-density");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_advisor_says_how_to_install_it() {
    let running = Running::without_operator().await;
    let kubeconfig = running.playground.kubeconfig();
    for arguments in [
        &["plan", "list"][..],
        &["plan", "show", NAME],
        &["rollback", NAME],
        &["approve", NAME, "--digest", "sha256:1"],
    ] {
        let output = virtpilot_as_given(Some(&kubeconfig), arguments);
        let why = "error: the cluster does not serve VirtPlatformConfig; install the advisor with ";
        assert!(output.code == Some(1) && output.stderr.starts_with(why), "{arguments:?}: {}", output.stderr);
    }
    let explained = virtpilot_as_given(Some(&kubeconfig), &["explain", NAME]);
    assert!(explained.stdout.contains("is neither planned nor applied."), "{}{}", explained.stdout, explained.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_feature_means_a_profile_only_while_that_governs() {
    let cluster = Cluster::start().await;
    let shared = "node-remediation";
    let approve = |why: &str| {
        let output = cluster.run(&["approve", shared]);
        assert!(output.code == Some(1) && output.stderr.contains(why), "{why:?} is not in {}", output.stderr);
    };
    approve("nothing of node-remediation waits for an approval");
    cluster.apply(shared, json!({"action": "Ignore", "handOver": true})).await;
    approve("nothing of node-remediation waits for an approval");
    cluster.apply(shared, json!({"action": "Ignore"})).await;
    approve("its action is Ignore");
    cluster.apply(shared, json!({"action": "DryRun"})).await;
    approve("nothing of node-remediation can be approved: its status is about no generation");
    // With a digest, or with the kind, it is always the profile.
    cluster.apply(shared, json!({"action": "Ignore"})).await;
    cluster.refuses(&["approve", shared, "--digest", &digest('a')], "its action is Ignore");
    cluster.refuses(&["approve", "virtplatformconfig/node-remediation"], "its action is Ignore");
}

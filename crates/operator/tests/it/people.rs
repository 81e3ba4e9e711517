//! Viewers, editors and approvers can do what their role says, and no more.

use crate::operator::{NAMESPACE, Running, SERVICE, digest_in, eventually};
use crate::packages::{deploy, succeed, virtpilot};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use playground::Playground;
use playground::service_account::Account;
use serde_json::{Value, json};
use std::process::Command;

const HCO: (&str, &str, &str) = ("hco.kubevirt.io", "HyperConverged", "kubevirt-hyperconverged");
const METRICS: (&str, &str, &str) = ("", "Service", SERVICE);

fn kubectl(playground: &Playground, arguments: &[&str]) {
    succeed(Command::new(playground.folder().join("kubectl")).args(arguments));
}

/// Somebody with one of the roles.
struct Person(Account);

impl Person {
    async fn with(playground: &Playground, role: &str) -> Person {
        let account = playground.account("openshift-operators", role).await.unwrap();
        let cluster_role = format!("--clusterrole=virt-platform-autopilot-{role}");
        let subject = format!("--serviceaccount=openshift-operators:{role}");
        kubectl(playground, &["create", "clusterrolebinding", role, &cluster_role, &subject]);
        Person(account)
    }

    fn api(&self, (group, kind, _): (&str, &str, &str)) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.0.client.clone(), NAMESPACE, &resource)
    }

    /// Whether a merge patch is accepted; otherwise the server's message.
    async fn patch(&self, object: (&str, &str, &str), patch: Value) -> Result<(), String> {
        let patched = self.api(object).patch(object.2, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn annotate(&self, object: (&str, &str, &str), key: &str, value: &str) -> Result<(), String> {
        let annotations = json!({format!("platform.kubevirt.io/{key}"): value});
        self.patch(object, json!({"metadata": {"annotations": annotations}})).await
    }

    async fn delete(&self, object: (&str, &str, &str)) -> bool {
        self.api(object).delete(object.2, &DeleteParams::default()).await.is_ok()
    }

    /// The output of a command, which ends with one of these codes.
    fn run(&self, arguments: &[&str], codes: &[i32]) -> String {
        self.run_both(arguments, codes).0
    }

    /// The same, and its errors.
    fn run_both(&self, arguments: &[&str], codes: &[i32]) -> (String, String) {
        let output = virtpilot(arguments).env("KUBECONFIG", &self.0.kubeconfig).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.code().is_some_and(|code| codes.contains(&code)), "{arguments:?}: {out}\n{err}");
        (out, err)
    }
}

fn refused_by(result: Result<(), String>, why: &str) {
    let message = result.err().unwrap_or_default();
    assert!(message.contains(why), "{message:?} is not {why:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_can_do_what_their_role_says_and_no_more() {
    let running = Running::without_operator().await;
    let playground = &running.playground;
    kubectl(playground, &["apply", "--kustomize", deploy("kustomize").to_str().unwrap()]);
    let viewer = Person::with(playground, "viewer").await;
    let editor = Person::with(playground, "editor").await;
    let approver = Person::with(playground, "approver").await;
    // The server takes a moment to enforce a new policy.
    let trial = PatchParams { dry_run: true, ..PatchParams::default() };
    let change = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    eventually("the policy is enforced", async || editor.api(HCO).patch(HCO.2, &trial, &change).await.err()).await;
    let account = playground.account(NAMESPACE, "virt-platform-autopilot").await.unwrap();
    let mut operator = virtpilot(&["run", "--metrics-bind-address=0", "--health-probe-bind-address=0"]);
    let _operator = crate::operator::Process::of(operator.env("KUBECONFIG", &account.kubeconfig));
    let held = eventually("the operator asks", async || {
        let status: Value = serde_json::from_str(&viewer.run(&["status", "--output", "json"], &[0])).unwrap();
        let swap = status["assets"].as_array().unwrap().iter().find(|line| line["asset"] == "swap-enable")?.clone();
        digest_in(swap["why"].as_str()?).map(str::to_owned)
    })
    .await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;

    // A viewer sees everything but Secrets, and changes nothing.
    assert!(viewer.run(&["plan"], &[0, 2]).contains("90-worker-swap-online"));
    viewer.run(&["facts"], &[0]);
    let secrets: Api<Secret> = Api::namespaced(viewer.0.client.clone(), NAMESPACE);
    assert!(secrets.list(&ListParams::default()).await.is_err());
    for object in [HCO, METRICS] {
        refused_by(viewer.annotate(object, "mode", "unmanaged").await, "cannot patch resource");
        assert!(!viewer.delete(object).await && !editor.delete(object).await && !approver.delete(object).await);
    }

    for person in [&viewer, &editor] {
        let (_, refused) = person.run_both(&["approve", "--yes", "swap-enable"], &[1]);
        let wanted =
            "may not approve, and nothing was changed; ask for the ClusterRole virt-platform-autopilot-approver";
        assert!(refused.contains(wanted) && refused.matches("error: ").count() == 1, "{refused}");
    }

    // An editor changes annotations, and approves nothing.
    editor.annotate(HCO, "maintenance-window", "Sat 01:00-05:00 UTC").await.unwrap();
    editor.annotate(HCO, "maintenance-window", "Sun 01:00-05:00 UTC").await.unwrap();
    editor
        .patch(HCO, json!({"metadata": {"annotations": {"platform.kubevirt.io/maintenance-window": null}}}))
        .await
        .unwrap();
    editor.annotate(METRICS, "reconcile-paused", "true").await.unwrap();
    for (object, patch) in [
        (METRICS, json!({"spec": {"sessionAffinity": "ClientIP"}})),
        (METRICS, json!({"metadata": {"labels": {"app": "mine"}}})),
        (METRICS, json!({"metadata": {"labels": null}})),
        (METRICS, json!({"metadata": {"finalizers": ["example.io/mine"]}})),
        (HCO, json!({"spec": {"featureGates": [{"name": "persistentReservation", "state": "Enabled"}]}})),
    ] {
        refused_by(editor.patch(object, patch).await, "is for the annotations");
    }
    // Fields of others cannot be handed to the autopilot, which would delete them, and owners cannot be erased.
    kubectl(playground, &["label", "service", SERVICE, "--namespace", NAMESPACE, "example.io/theirs=yes"]);
    let mut owners = serde_json::to_value(editor.api(METRICS).get(METRICS.2).await.unwrap()).unwrap();
    let owners = &mut owners["metadata"]["managedFields"];
    let entries = owners.as_array_mut().unwrap();
    let ours = entries.iter_mut().find(|entry| entry["manager"] == api::FIELD_MANAGER && entry["operation"] == "Apply");
    ours.unwrap()["fieldsV1"]["f:metadata"]["f:labels"]["f:example.io/theirs"] = json!({});
    for managed_fields in [owners.clone(), json!([{}])] {
        let patch = json!({"metadata": {"managedFields": managed_fields}});
        refused_by(editor.patch(METRICS, patch).await, "is for the annotations");
    }
    // Annotations of other operators, and those that the autopilot keeps for itself.
    for key in ["kubevirt.kubevirt.io/jsonpatch", "platform.kubevirt.io/origin"] {
        let patch = json!({"metadata": {"annotations": {key: "[]"}}});
        refused_by(editor.patch(HCO, patch).await, "is for the annotations");
    }
    refused_by(editor.annotate(HCO, "approved", &held).await, "are for approvers");
    refused_by(editor.annotate(HCO, "approval", "none").await, "are for approvers");
    refused_by(editor.annotate(HCO, "approved-by", "me").await, "are for approvers");

    // An approver approves, and changes nothing else.
    refused_by(approver.annotate(HCO, "autopilot", "false").await, "alone");
    refused_by(approver.annotate(HCO, "approval", "none").await, "alone");
    refused_by(approver.patch(HCO, json!({"metadata": {"labels": {"a": "b"}}})).await, "alone");
    refused_by(approver.annotate(METRICS, "mode", "unmanaged").await, "cannot patch resource");
    let name = &approver.0.user;
    let entry = |author: &str| format!("{held} 2026-11-17T13:00:00Z MachineConfig/x {author}");
    for forged in
        [entry("system:admin"), entry(&format!("{name} x")), name.clone(), format!("{}\n{}", entry(name), entry("eve"))]
    {
        refused_by(approver.annotate(HCO, "approved-by", &forged).await, "names its author");
    }
    approver.annotate(HCO, "approved-by", &entry(name)).await.unwrap();
    editor.annotate(HCO, "maintenance-window", "never").await.unwrap();
    let approved = approver.run(&["approve", "--yes", "swap-enable"], &[0]);
    assert!(approved.contains(&format!(" by {name}; ")) && approved.contains("cannot be read"), "{approved}");
    let (_, refused) = viewer.run_both(&["approve", "--revoke", "swap-enable"], &[1]);
    assert!(refused.contains("you may not approve, and nothing was changed; ask for the ClusterRole"), "{refused}");
    let revoked = approver.run(&["approve", "--revoke", "swap-enable"], &[0]);
    assert!(revoked.starts_with("revoked ") && revoked.contains(&format!("approved by {name} on 20")), "{revoked}");
    editor.annotate(HCO, "maintenance-window", "daily 00:00-24:00 UTC").await.unwrap();
    let file = playground.folder().join("plan.json").display().to_string();
    approver.run(&["plan", "--asset", "swap-enable", "--out", &file], &[2]);
    // Virtual machines may have secrets in their specification, so the role does not open them, and they are not counted.
    let are_fine = |warnings: &str| {
        warnings.starts_with("warning: could not list VirtualMachineInstance: ") && warnings.lines().count() == 1
    };
    let (shown, warnings) = approver.run_both(&["approve", "--plan", &file, "--dry-run"], &[0]);
    assert!(shown.contains("+ file /etc/openshift/kubelet.conf.d/90-swap.conf"), "{shown}");
    assert!(are_fine(&warnings), "{warnings}");
    let (approved, warnings) = approver.run_both(&["approve", "--plan", &file], &[0]);
    assert!(
        approved.contains(&format!(
            "by {name}; no operator leads in namespace openshift-cnv; the change is made when one runs"
        )),
        "{approved}"
    );
    assert!(are_fine(&warnings), "{warnings}");
    let hco = approver.api(HCO).get(HCO.2).await.unwrap();
    let record = &hco.metadata.annotations.unwrap()["platform.kubevirt.io/approved-by"];
    assert!(
        record.starts_with(&held) && record.ends_with(&format!(" {name}")) && record.lines().count() == 1,
        "{record}"
    );
    eventually("it is applied", async || running.machine_configs().get_opt(crate::operator::SWAP).await.unwrap()).await;

    // Whoever has other rights keeps them.
    running.annotate_hco("approval", Some("none")).await;
    kubectl(playground, &["label", "service", SERVICE, "--namespace", NAMESPACE, "example.io/mine=yes"]);
}

//! Viewers, editors and approvers of profiles can do what their role says, and no more; the advisor itself approves nothing.

use crate::operator::eventually;
use crate::packages::{deploy, succeed, virtpilot};
use crate::profile_commands::{digest, review};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use playground::Playground;
use playground::service_account::Account;
use serde_json::{Value, json};
use std::process::Command;

const NAME: &str = "load-aware-rebalancing";

fn kubectl(playground: &Playground, arguments: &[&str]) {
    succeed(Command::new(playground.folder().join("kubectl")).args(arguments));
}

/// Somebody who uses profiles.
struct Person(Account);

impl Person {
    async fn with(playground: &Playground, role: &str) -> Person {
        let account = playground.account("openshift-operators", role).await.unwrap();
        let cluster_role = format!("--clusterrole=virt-advisor-operator-{role}");
        let subject = format!("--serviceaccount=openshift-operators:{role}");
        kubectl(playground, &["create", "clusterrolebinding", role, &cluster_role, &subject]);
        Person(account)
    }

    fn api(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
        Api::all_with(self.0.client.clone(), &ApiResource::from_gvk(&kind))
    }

    /// Whether a merge patch of the spec is accepted; otherwise the server's message.
    async fn edit(&self, spec: Value) -> Result<(), String> {
        self.patch(json!({"spec": spec})).await
    }

    async fn patch(&self, patch: Value) -> Result<(), String> {
        let patched = self.api().patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.map(|_| ()).map_err(|error| error.to_string())
    }

    async fn apply(&self, spec: Value) -> Result<(), String> {
        let object = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": NAME}, "spec": spec,
        });
        let applied = self.api().patch(NAME, &PatchParams::apply("person"), &Patch::Apply(&object)).await;
        applied.map(|_| ()).map_err(|error| error.to_string())
    }

    /// The output of a command, which ends with this code, and its errors.
    fn run(&self, arguments: &[&str], code: i32) -> (String, String) {
        let output = virtpilot(arguments).env("KUBECONFIG", &self.0.kubeconfig).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}\n{err}");
        (out, err)
    }
}

fn refused(result: Result<(), String>, why: &str) {
    let message = result.err().unwrap_or_default();
    assert!(message.contains(why), "{message:?} is not {why:?}");
}

const FOR_APPROVERS: &str = "with the action Apply, the spec is for approvers";

#[tokio::test(flavor = "multi_thread")]
async fn people_of_the_advisor_can_do_what_their_role_says_and_no_more() {
    let playground = crate::operator::playground().await;
    kubectl(&playground, &["apply", "--kustomize", deploy("kustomize").to_str().unwrap()]);
    let viewer = Person::with(&playground, "viewer").await;
    let editor = Person::with(&playground, "editor").await;
    let approver = Person::with(&playground, "approver").await;
    let admin = Person(playground.account("openshift-operators", "admin").await.unwrap());
    kubectl(
        &playground,
        &[
            "create",
            "clusterrolebinding",
            "admin",
            "--clusterrole=cluster-admin",
            "--serviceaccount=openshift-operators:admin",
        ],
    );
    let spec = |action: &str| json!({"profile": NAME, "action": action});
    // The server takes a moment to serve a new kind, and to enforce a new policy.
    let trial = PatchParams { dry_run: true, ..PatchParams::apply("person") };
    eventually("the kind is served and the policy is enforced", async || {
        let object = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": NAME}, "spec": spec("Apply"),
        });
        let refused = editor.api().patch(NAME, &trial, &Patch::Apply(&object)).await.err()?.to_string();
        refused.contains(FOR_APPROVERS).then_some(())
    })
    .await;

    // An editor plans, and approves nothing: neither when creating, nor by editing what is applied.
    refused(viewer.apply(spec("DryRun")).await, "cannot patch resource");
    refused(editor.apply(spec("Apply")).await, FOR_APPROVERS);
    editor.apply(spec("DryRun")).await.unwrap();
    let status = |digest: &str, generation: Option<i64>| {
        let mut status = review(digest);
        status["observedGeneration"] = json!(generation);
        json!({"status": status})
    };
    let generation = admin.api().get(NAME).await.unwrap().metadata.generation;
    let shown = Patch::Merge(status(&digest('a'), generation));
    admin.api().patch_status(NAME, &PatchParams::default(), &shown).await.unwrap();
    assert!(viewer.run(&["plan", "show", NAME], 2).0.contains("99-psi"));
    assert!(viewer.run(&["plan", "list"], 0).0.contains("ReviewRequired"));
    for person in [&viewer, &editor] {
        let (_, why) = person.run(&["approve", NAME, "--digest", &digest('a')], 1);
        let wanted = "error: you may not approve, and nothing was changed; ask for the ClusterRole virt-advisor-operator-approver: ";
        assert!(why.starts_with(wanted), "{why}");
    }
    refused(editor.edit(json!({"approvedPlan": digest('a')})).await, "spec.approvedPlan is for approvers");
    refused(editor.edit(json!({"action": "Apply"})).await, FOR_APPROVERS);
    refused(
        viewer.run(&["rollback", NAME], 1).1.lines().map(str::to_owned).map(Err).next().unwrap(),
        "virt-advisor-operator-editor",
    );

    // An approver approves, and changes nothing else.
    let limits = json!({"options": {"loadAware": {"evictionLimitTotal": 9}}});
    refused(approver.edit(limits.clone()).await, "alone");
    refused(approver.patch(json!({"metadata": {"labels": {"a": "b"}}})).await, "alone");
    refused(approver.edit(json!({"action": "Apply", "bypassOptimisticLock": true})).await, "alone");
    assert!(approver.api().delete(NAME, &DeleteParams::default()).await.is_err());
    approver.run(&["approve", NAME, "--digest", &digest('a')], 0);

    // What is approved stays as it was approved, unless it goes back to a review or is left alone.
    for edit in [
        limits.clone(),
        json!({"approvedPlan": null}),
        json!({"rollback": true}),
        json!({"bypassOptimisticLock": true}),
        json!({"remediation": "Automatic"}),
    ] {
        refused(editor.edit(edit).await, FOR_APPROVERS);
    }
    editor.patch(json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    editor.edit(json!({"action": "Ignore"})).await.unwrap();
    refused(editor.edit(json!({"action": "Apply"})).await, FOR_APPROVERS);
    approver.edit(json!({"action": "Apply"})).await.unwrap();
    let (planned, _) = editor.run(&["rollback", NAME], 0);
    assert!(planned.contains("nothing is written before an approval"), "{planned}");
    refused(editor.edit(json!({"action": "Apply"})).await, FOR_APPROVERS);
    editor.api().delete(NAME, &DeleteParams::default()).await.unwrap();

    // Whoever has all rights keeps them, and the advisor itself advertises and approves nothing.
    admin.apply(spec("Apply")).await.unwrap();
    admin.edit(limits).await.unwrap();
    admin.api().delete(NAME, &DeleteParams::default()).await.unwrap();
    let advisor = Person(playground.account("openshift-cnv", "virt-platform-autopilot").await.unwrap());
    let create = async |action: &str| {
        let object = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": NAME}, "spec": spec(action),
        });
        let created =
            advisor.api().create(&kube::api::PostParams::default(), &serde_json::from_value(object).unwrap()).await;
        created.map(|_| ()).map_err(|error| error.to_string())
    };
    refused(create("Apply").await, FOR_APPROVERS);
    create("Ignore").await.unwrap();
    refused(advisor.edit(json!({"action": "Apply"})).await, "cannot patch resource");
    let status = Patch::Merge(status(&digest('b'), Some(1)));
    advisor.api().patch_status(NAME, &PatchParams::default(), &status).await.unwrap();
}

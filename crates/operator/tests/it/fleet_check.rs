//! `virtpilot fleet check` on a real API server: templates of other namespaces count, as far as the person may read them.

use crate::fleet::Fleet;
use crate::packages::{succeed, virtpilot};
use kube::api::{Patch, PatchParams};
use playground::deployment::objects;
use playground::fleet_site::{self, SPACE};
use playground::proxmox::Timing;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// What is said about the hypervisors of the namespace, and the exit code.
fn check(kubeconfig: &Path) -> (String, Option<i32>) {
    let output = virtpilot(&["fleet", "check", "--namespace", SPACE]).env("KUBECONFIG", kubeconfig).output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (text, output.status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_one_namespace_reads_the_templates_of_all_that_may_use_its_hypervisors() {
    let fleet = Fleet::start(Timing::short()).await;
    let kubectl = |arguments: &[&str]| {
        succeed(Command::new(fleet.playground.folder().join("kubectl")).args(arguments));
    };
    kubectl(&["create", "namespace", "team"]);
    let mut spec = fleet_site::cluster_spec("pve", &fleet.proxmox.address);
    spec["allowedNamespaces"] = json!(["team"]);
    fleet.apply("HypervisorCluster", "pve", spec).await;
    let mut spec = fleet_site::template_spec("pve");
    spec["hypervisorClusterRef"]["namespace"] = json!(SPACE);
    spec["template"]["proxmox"]["storage"] = json!("nowhere");
    let template = json!({
        "apiVersion": fleet_site::API_VERSION, "kind": "HypervisorMachineTemplate", "metadata": {"name": "theirs"}, "spec": spec,
    });
    let theirs = objects(&fleet.playground, fleet_site::API_VERSION, "HypervisorMachineTemplate", Some("team"));
    theirs.patch("theirs", &PatchParams::apply("admin"), &Patch::Apply(&template)).await.unwrap();

    let (text, code) = check(&fleet.playground.kubeconfig());
    assert!(code == Some(1) && text.contains("ci/pve: FAIL: the hypervisor has no storage nowhere"), "{text}");
    assert!(!text.contains("note:"), "{text}");

    // Somebody with rights in one namespace is told what was not read.
    let person = fleet.playground.account(SPACE, "person").await.unwrap();
    let kinds = "--resource=hypervisorclusters.hyperfleet.io,hypervisormachinetemplates.hyperfleet.io,secrets";
    let grant = |namespace: &str| {
        kubectl(&["create", "role", "reader", "--verb=get,list", kinds, "--namespace", namespace]);
        let account = format!("--serviceaccount={SPACE}:person");
        kubectl(&["create", "rolebinding", "reader", "--role=reader", &account, "--namespace", namespace]);
    };
    grant(SPACE);
    let (text, code) = check(&person.kubeconfig);
    let note = "ci/pve: note: templates of the namespace team may use it and could not be read";
    assert!(code == Some(0) && text.contains("ci/pve: ok") && text.contains(note), "{text}");
    grant("team");
    let (text, code) = check(&person.kubeconfig);
    assert!(code == Some(1) && text.contains("no storage nowhere") && !text.contains("note:"), "{text}");
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

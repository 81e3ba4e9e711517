//! Machines of KubeVirt, on a real API server with the CRDs of KubeVirt.

use crate::fleet::{Fleet, ready};
use crate::operator::eventually;
use crate::packages::{succeed, virtpilot};
use kube::api::{Patch, PatchParams};
use playground::Playground;
use playground::deployment::objects;
use playground::fleet_site::SPACE;
use playground::proxmox::Timing;
use serde_json::{Value, json};
use std::process::Command;

/// Refuses what the webhook of KubeVirt refuses: more than 2 KiB of user data in a machine.
async fn limit_user_data(playground: &Playground) {
    let group = "admissionregistration.k8s.io";
    let metadata = json!({"name": "user-data"});
    let rule = json!({
        "apiGroups": ["kubevirt.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["virtualmachines"],
    });
    let short = "!has(object.spec.template.spec.volumes) || object.spec.template.spec.volumes.all(volume, \
        !has(volume.cloudInitNoCloud) || !has(volume.cloudInitNoCloud.userData) || size(volume.cloudInitNoCloud.userData) <= 2048)";
    let policy = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicy", "metadata": metadata,
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": short}]},
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
        "spec": {"policyName": "user-data", "validationActions": ["Deny"]},
    });
    for object in [policy, binding] {
        let kind = object["kind"].as_str().unwrap();
        let api = objects(playground, "admissionregistration.k8s.io/v1", kind, None);
        api.patch("user-data", &PatchParams::apply("admin"), &Patch::Apply(&object)).await.unwrap();
    }
    let seed = json!({"name": "seed", "cloudInitNoCloud": {"userData": "a".repeat(2049)}});
    let large = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "large"},
        "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}, "volumes": [seed]}}},
    });
    let machines = objects(playground, "kubevirt.io/v1", "VirtualMachine", Some(SPACE));
    let parameters = PatchParams::apply("admin").dry_run();
    eventually("large user data are refused", async || {
        let answer = machines.patch("large", &parameters, &Patch::Apply(&large)).await;
        answer.err().filter(|error| error.to_string().contains("user-data"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_kubevirt_is_made_with_the_rights_in_its_namespace_alone() {
    let mut fleet = Fleet::install(Timing::short(), "").await;
    let rights = succeed(&mut virtpilot(&["rbac", "--product=fleet", "--fleet-kubevirt-namespaces=ci"])).0;
    let file = fleet.playground.folder().join("rights.yaml");
    std::fs::write(&file, rights).unwrap();
    let kubectl = || Command::new(fleet.playground.folder().join("kubectl"));
    succeed(kubectl().args(["apply", "--server-side", "--filename"]).arg(&file));
    let node = json!({"metadata": {"labels": {"kubevirt.io/schedulable": "true"}}});
    let capacity = json!({"status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "100"}}});
    let nodes = objects(&fleet.playground, "v1", "Node", None);
    nodes.patch("worker-0", &PatchParams::default(), &Patch::Merge(&node)).await.unwrap();
    nodes.patch_status("worker-0", &PatchParams::default(), &Patch::Merge(&capacity)).await.unwrap();
    let disk = json!({"name": "root", "disk": {"bus": "virtio"}});
    let inside = json!({
        "domain": {"devices": {"disks": [disk]}, "memory": {"guest": "1Gi"}},
        "volumes": [{"name": "root", "containerDisk": {"image": "registry.example/disk:1"}}],
    });
    let golden = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {"name": "golden", "labels": {"hyperfleet.io/template": ""}},
        "spec": {"runStrategy": "Halted", "template": {"spec": inside}},
    });
    let machines = objects(&fleet.playground, "kubevirt.io/v1", "VirtualMachine", Some(SPACE));
    machines.patch("golden", &PatchParams::apply("admin"), &Patch::Apply(&golden)).await.unwrap();
    limit_user_data(&fleet.playground).await;
    fleet.restart();
    fleet
        .apply(
            "HypervisorCluster",
            "here",
            json!({"provider": "kubevirt", "endpoint": "https://kubernetes.default.svc"}),
        )
        .await;
    let template = json!({
        "hypervisorClusterRef": {"name": "here"}, "template": {"kubevirt": {"name": "golden"}},
        "resources": {"cpu": 2, "memory": "2Gi"},
        "cloudInit": {"userData": format!("#cloud-config\nruncmd: [[echo, {}]]\n", "a".repeat(3000))},
    });
    fleet.apply("HypervisorMachineTemplate", "linux", template).await;
    fleet.reason("HypervisorCluster", "here", "ConnectionSuccessful").await;
    fleet.claim("one").await;
    let starts = |status: &Value| {
        ["Starting", "WaitingForGuest", "PowerUnknown"].iter().any(|reason| ready(status)["reason"] == *reason)
    };
    let status = fleet.status("MachineClaim", "one", "a machine that is switched on", starts).await;
    let id = status["vmRef"]["vmId"].as_str().unwrap();
    let machine = eventually("the machine is switched on", async || {
        machines.get(id).await.ok().filter(|machine| machine.data["spec"]["runStrategy"] == "Once")
    })
    .await;
    assert_eq!(
        (&machine.data["spec"]["runStrategy"], &machine.data["spec"]["template"]["spec"]["hostname"]),
        (&json!("Once"), &json!("one"))
    );
    let source = &machine.data["spec"]["template"]["spec"]["volumes"][1]["cloudInitNoCloud"];
    let seed = source["secretRef"]["name"].as_str().unwrap();
    let secrets = objects(&fleet.playground, "v1", "Secret", Some(SPACE));
    let secret = secrets.get(seed).await.unwrap();
    assert!(secret.data["data"]["userdata"].as_str().unwrap().len() > 3000);
    assert_eq!(secret.metadata.owner_references.unwrap()[0].uid, machine.metadata.uid.unwrap());

    // There is no KubeVirt here that would run it.
    let running = json!({"status": {"printableStatus": "Running"}});
    machines.patch_status(id, &PatchParams::default(), &Patch::Merge(&running)).await.unwrap();
    let instances = objects(&fleet.playground, "kubevirt.io/v1", "VirtualMachineInstance", Some(SPACE));
    let instance = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": id},
        "spec": {"domain": {"devices": {}}},
        "status": {"interfaces": [{"ipAddress": "10.1.0.4", "ipAddresses": ["10.1.0.4"]}]},
    });
    instances.patch(id, &PatchParams::apply("kubevirt"), &Patch::Apply(&instance)).await.unwrap();
    let addressed = json!({"status": instance["status"]});
    let _ = instances.patch_status(id, &PatchParams::default(), &Patch::Merge(&addressed)).await;
    let status = fleet.ready_claim("one").await;
    assert_eq!(status["networkInfo"]["ipAddress"], "10.1.0.4");
    fleet.delete("MachineClaim", "one").await;
    let is_gone = async || secrets.get_opt(seed).await.unwrap().is_none().then_some(());
    eventually("the Secret goes with its machine", is_gone).await;
    assert!(machines.get_opt(id).await.unwrap().is_none() && machines.get_opt("golden").await.unwrap().is_some());
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

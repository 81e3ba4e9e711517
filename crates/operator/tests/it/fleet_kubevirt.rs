//! Machines of KubeVirt, on a real API server with the CRDs of KubeVirt.

use crate::fleet::{Fleet, ready};
use crate::operator::eventually;
use crate::packages::{succeed, virtpilot};
use kube::api::{Patch, PatchParams};
use playground::deployment::objects;
use playground::fleet_site::SPACE;
use playground::proxmox::Timing;
use serde_json::{Value, json};
use std::process::Command;

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
    assert!(machines.get_opt(id).await.unwrap().is_none() && machines.get_opt("golden").await.unwrap().is_some());
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

//! Writes under our own field manager are drift, too.

use crate::operator::{NAMESPACE, Running, SERVICE, eventually, quiet};
use kube::api::{Patch, PatchParams};
use playground::audit::Kind;
use playground::deployment;
use serde_json::{Value, json};

const US: &str = "virt-platform-autopilot";

#[tokio::test(flavor = "multi_thread")]
async fn writes_under_our_field_manager_are_detected_and_corrected() {
    let running = Running::start(Some("true")).await;
    let services = running.services();
    eventually("the Service exists", async || services.get_opt(SERVICE).await.unwrap()).await;
    let becomes = async |pointer: &str, wanted: Value| {
        eventually(&format!("{pointer} is {wanted}"), async || {
            let service = serde_json::to_value(services.get(SERVICE).await.unwrap()).unwrap();
            (service.pointer(pointer) == Some(&wanted)).then_some(())
        })
        .await;
    };
    let app = "/spec/selector/app";
    // An apply with our field manager: the server treats it as ours and the fields it omits as given up.
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE},
        "spec": {"selector": {"app": "theirs"}, "ports": [{"name": "metrics", "port": 8080}]}});
    // Timestamps in managedFields are whole seconds: within the same second only the fields distinguish this apply from ours.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    services.patch(SERVICE, &PatchParams::apply(US).force(), &Patch::Apply(&theirs)).await.unwrap();
    becomes(app, json!(US)).await;
    becomes("/metadata/labels/platform.kubevirt.io~1managed-by", json!(US)).await;
    // A plain update with our field manager.
    let params = PatchParams { field_manager: Some(US.into()), ..PatchParams::default() };
    services.patch(SERVICE, &params, &Patch::Merge(&json!({"spec": {"selector": {"app": "theirs"}}}))).await.unwrap();
    becomes(app, json!(US)).await;
    // A removed item of ours is restored, and an item that another writer adds stays.
    let machine_configs =
        deployment::objects(&running.playground, "machineconfiguration.openshift.io/v1", "MachineConfig", None);
    let swap =
        eventually("the MachineConfig exists", async || machine_configs.get_opt(crate::operator::SWAP).await.unwrap())
            .await;
    let units = swap.data["spec"]["config"]["systemd"]["units"].as_array().unwrap().len();
    let remove = json!([{"op": "remove", "path": "/spec/config/systemd/units/0"}]);
    let patch = Patch::Json::<()>(serde_json::from_value(remove).unwrap());
    machine_configs.patch(crate::operator::SWAP, &PatchParams::default(), &patch).await.unwrap();
    eventually("the unit is restored", async || {
        let swap = machine_configs.get(crate::operator::SWAP).await.unwrap();
        (swap.data["spec"]["config"]["systemd"]["units"].as_array().unwrap().len() == units).then_some(())
    })
    .await;
    let add = json!([{"op": "add", "path": "/spec/ports/-", "value": {"name": "extra", "port": 9, "protocol": "TCP"}}]);
    let patch = Patch::Json::<()>(serde_json::from_value(add).unwrap());
    services.patch(SERVICE, &PatchParams::default(), &patch).await.unwrap();
    quiet(&running).await;
    becomes("/spec/ports/1/name", json!("extra")).await;

    // A write of the same value costs no request.
    let before = running.audit().mark().unwrap();
    services.patch(SERVICE, &params, &Patch::Merge(&json!({"spec": {"selector": {"app": US}}}))).await.unwrap();
    quiet(&running).await;
    let own = running.own(&running.audit().since(before).unwrap());
    assert_eq!(own.count() - own.of(Kind::Watch).count(), 0, "{:?}", own.table());
    assert_eq!(services.get(SERVICE).await.unwrap().metadata.namespace.as_deref(), Some(NAMESPACE));
}

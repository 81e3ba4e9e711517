//! Objects are created, drift is corrected, and overrides are honoured.

use crate::operator::{Running, SERVICE, SWAP, annotate, digest_in, edit, eventually, quiet};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use playground::audit::Kind;
use serde_json::json;

async fn service(running: &Running) -> DynamicObject {
    eventually("the metrics Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await
}

async fn is_corrected(running: &Running, before: usize) {
    eventually("the correction is reported", async || {
        (running.events("DriftCorrected").await.len() > before).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_applies_low_impact_objects_and_requires_approval_for_the_rest() {
    let running = Running::start(None).await;
    assert_eq!(service(&running).await.data["spec"]["ports"][0]["port"], 8080);
    let required = eventually("an approval is required", async || running.events("ApprovalRequired").await.pop()).await;
    assert!(
        required
            .contains("restarts 3 nodes of pool worker: worker-0, worker-1, worker-2, one at a time; run \"virtpilot approve sha256:"),
        "{required}"
    );
    assert!(running.machine_configs().get_opt(SWAP).await.unwrap().is_none());
    let digest = digest_in(&required).unwrap();
    running.annotate_hco("approved", Some(digest)).await;
    eventually("the approved MachineConfig exists", async || running.machine_configs().get_opt(SWAP).await.unwrap())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_state_makes_no_used_approval_valid_again() {
    let mut running = Running::start(None).await;
    let machines = running.machine_configs();
    let asked = async |running: &Running, before: usize| {
        eventually("an approval is required", async || {
            let events = running.events("ApprovalRequired").await;
            (events.len() > before)
                .then(|| events.iter().filter_map(|note| digest_in(note)).map(str::to_owned).collect())
        })
        .await
    };
    let first: Vec<String> = asked(&running, 0).await;
    running.annotate_hco("approved", Some(&first[0])).await;
    eventually("the approved MachineConfig exists", async || machines.get_opt(SWAP).await.unwrap()).await;
    running.stop();
    running.config_maps().delete(api::STATE, &DeleteParams::default()).await.unwrap();
    machines.delete(SWAP, &DeleteParams::default()).await.unwrap();
    running.restart();
    let second: Vec<String> = asked(&running, 1).await;
    quiet(&running).await;
    assert!(machines.get_opt(SWAP).await.unwrap().is_none(), "the approval is used");
    let other = second.iter().find(|digest| **digest != first[0]).expect("another digest is asked for");
    running.annotate_hco("approved", Some(&format!("{},{other}", first[0]))).await;
    eventually("the approved MachineConfig exists", async || machines.get_opt(SWAP).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_corrected_with_one_write_and_one_event() {
    let running = Running::start(Some("true")).await;
    service(&running).await;
    eventually("the MachineConfig exists", async || running.machine_configs().get_opt(SWAP).await.unwrap()).await;
    quiet(&running).await;
    let before = running.audit().mark().unwrap();
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "else"}}})).await;
    is_corrected(&running, 0).await;
    assert_eq!(service(&running).await.data["spec"]["selector"]["app"], "virt-platform-autopilot");
    quiet(&running).await;
    let own = running.own(&running.audit().since(before).unwrap());
    assert_eq!((own.of(Kind::Write).count(), own.of(Kind::Event).count(), own.count()), (1, 1, 2), "{:?}", own.table());
    let notes = running.events("DriftCorrected").await;
    assert!(notes[0].contains("rogue changed .spec.selector"), "{notes:?}");

    // A write of the same value is not drift.
    let before = running.audit().mark().unwrap();
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "virt-platform-autopilot"}}})).await;
    quiet(&running).await;
    let own = running.own(&running.audit().since(before).unwrap());
    assert_eq!(own.count(), 0, "{:?}", own.table());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_object_is_recreated_and_a_removed_label_is_restored() {
    let running = Running::start(Some("metrics-service")).await;
    let first = service(&running).await.metadata.uid;
    running.services().delete(SERVICE, &DeleteParams::default()).await.unwrap();
    eventually("the Service is recreated", async || {
        running.services().get_opt(SERVICE).await.unwrap().filter(|service| service.metadata.uid != first)
    })
    .await;
    let label = "platform.kubevirt.io/managed-by";
    edit(&running.services(), SERVICE, json!({"metadata": {"labels": {label: null}}})).await;
    eventually("the label is restored", async || {
        let labels = running.services().get(SERVICE).await.unwrap().metadata.labels.unwrap_or_default();
        labels.contains_key(label).then_some(())
    })
    .await;
    assert!(running.machine_configs().get_opt(SWAP).await.unwrap().is_none(), "only the named asset is managed");
}

#[tokio::test(flavor = "multi_thread")]
async fn patch_ignore_fields_and_mode_are_honoured() {
    let running = Running::start(Some("true")).await;
    service(&running).await;
    eventually("the MachineConfig exists", async || running.machine_configs().get_opt(SWAP).await.unwrap()).await;
    let affinity_is = async |wanted: &str| {
        eventually(&format!("the session affinity is {wanted}"), async || {
            let service = running.services().get(SERVICE).await.unwrap();
            (service.data["spec"]["sessionAffinity"] == wanted).then_some(())
        })
        .await;
    };
    // A patch is honoured, and refused on a sensitive kind.
    let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
    annotate(&running.services(), SERVICE, "patch", Some(patch)).await;
    affinity_is("ClientIP").await;
    annotate(&running.machine_configs(), SWAP, "patch", Some(patch)).await;
    let refused =
        eventually("the patch of the MachineConfig is refused", async || running.events("InvalidPatch").await.pop())
            .await;
    assert!(refused.contains("a MachineConfig cannot be patched by annotation"), "{refused}");

    // An ignored field belongs to the user: its value stays, and the user's apply needs no force.
    annotate(&running.services(), SERVICE, "ignore-fields", Some("/spec/sessionAffinity")).await;
    let ours = eventually("we do not own the field any more", async || {
        let service = running.services().get(SERVICE).await.unwrap();
        let fields = serde_json::to_value(&service.metadata.managed_fields).unwrap();
        let entry = fields
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["manager"] == "virt-platform-autopilot" && entry["operation"] == "Apply")
            .cloned();
        entry.filter(|entry| entry["fieldsV1"]["f:spec"].get("f:sessionAffinity").is_none())
    })
    .await;
    assert!(ours["fieldsV1"]["f:spec"].get("f:selector").is_some());
    assert_eq!(
        running.services().get(SERVICE).await.unwrap().data["spec"]["sessionAffinity"],
        "ClientIP",
        "the value stays"
    );
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": {"sessionAffinity": "None"}});
    running.services().patch(SERVICE, &PatchParams::apply("person"), &Patch::Apply(&theirs)).await.unwrap();
    quiet(&running).await;
    affinity_is("None").await;

    // An unmanaged object is not corrected.
    annotate(&running.services(), SERVICE, "mode", Some("unmanaged")).await;
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "mine"}}})).await;
    quiet(&running).await;
    assert_eq!(service(&running).await.data["spec"]["selector"]["app"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_key_is_corrected_and_fields_applied_by_another_manager_are_left_alone() {
    let running = Running::start(Some("metrics-service")).await;
    service(&running).await;
    let ports = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 9999}]);
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    let patch = Patch::Json::<()>(serde_json::from_value(ports).unwrap());
    running.services().patch(SERVICE, &params, &patch).await.unwrap();
    eventually("the port is corrected, and the only one", async || {
        let ports = running.services().get(SERVICE).await.unwrap().data["spec"]["ports"].clone();
        (ports.as_array().unwrap().len() == 1 && ports[0]["port"] == 8080).then_some(())
    })
    .await;

    let theirs =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "labels": {"app": "theirs"}}});
    running.services().patch(SERVICE, &PatchParams::apply("gitops").force(), &Patch::Apply(&theirs)).await.unwrap();
    let note = eventually("the other manager is reported", async || running.events("OwnedByAnother").await.pop()).await;
    assert!(note.contains("gitops applies .metadata.labels.app"), "{note}");
    quiet(&running).await;
    assert_eq!(service(&running).await.metadata.labels.unwrap()["app"], "theirs");
}

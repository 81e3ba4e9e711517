//! Whom events regard: the object itself, and for what a person must act on also the HyperConverged.

use crate::operator::{NAMESPACE, Running, SERVICE, SWAP, annotate, edit, eventually, quiet};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use playground::audit::Kind;
use serde_json::json;

/// All events with a reason as `namespace: regarding + related, times`.
async fn published(running: &Running, reason: &str) -> Vec<String> {
    let api: Api<Event> = Api::all(running.playground.client());
    let mut lines = Vec::new();
    for event in api.list(&ListParams::default()).await.unwrap() {
        if event.reason.as_deref() != Some(reason) {
            continue;
        }
        let named = |reference: Option<k8s_openapi::api::core::v1::ObjectReference>| {
            let reference = reference.unwrap_or_default();
            assert!(reference.uid.is_some_and(|uid| !uid.is_empty()), "{reason}: a uid is missing");
            reference.kind.unwrap()
        };
        let times = event.series.map_or(1, |series| series.count);
        let namespace = event.metadata.namespace.unwrap();
        lines.push(format!("{namespace}: {} + {}, {times}", named(event.regarding), named(event.related)));
    }
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_costs_one_event_about_its_object_and_the_same_one_is_counted() {
    let running = Running::start(Some("true")).await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    quiet(&running).await;
    for times in 1..=3 {
        let mark = running.audit().mark().unwrap();
        edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "edited"}}})).await;
        let expected = format!("{NAMESPACE}: Service + HyperConverged, {times}");
        eventually("the correction is reported", async || {
            (published(&running, "DriftCorrected").await == [expected.clone()]).then_some(())
        })
        .await;
        quiet(&running).await;
        let own = running.own(&running.audit().since(mark).unwrap());
        let (writes, events) =
            (own.of(Kind::Write).count(), own.filter(|request| request.resource.starts_with("events")));
        assert_eq!((writes, events.count()), (1, 1), "{events:?}");
        let verb = if times == 1 { "create" } else { "patch" };
        assert_eq!(events.0[0].verb, verb);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_about_a_cluster_scoped_object_is_shown_by_both() {
    let running = Running::start(Some("true")).await;
    let machine_configs = running.machine_configs();
    eventually("the MachineConfig exists", async || machine_configs.get_opt(SWAP).await.unwrap()).await;
    assert_eq!(
        eventually("its creation is reported", async || {
            let lines = published(&running, "AssetApplied").await;
            lines.into_iter().find(|line| line.contains("MachineConfig"))
        })
        .await,
        "default: MachineConfig + HyperConverged, 1"
    );
    annotate(&machine_configs, SWAP, "patch", Some("[{")).await;
    let expected = ["default: MachineConfig + HyperConverged, 1", "openshift-cnv: HyperConverged + MachineConfig, 1"];
    eventually("both show it", async || (published(&running, "InvalidPatch").await == expected).then_some(())).await;
    let kubectl = running.playground.folder().join("kubectl");
    let described = std::process::Command::new(kubectl).args(["describe", "machineconfig", SWAP]).output().unwrap();
    let described = String::from_utf8(described.stdout).unwrap();
    assert!(described.contains("InvalidPatch"), "{described}");
}

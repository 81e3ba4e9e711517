//! Which objects each value of the annotation `autopilot` and of the opt-ins creates, holds and prunes.

use crate::fixture::create;
use crate::life_cycle_scenario::{LIFE_CYCLE, apply_as_us, labelled};
use crate::operator::{NAMESPACE, Running, annotate, digest_in, edit, eventually, eventually_within, quiet};
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, PostParams};
use playground::deployment;
use serde_json::json;
use std::time::Duration;

/// The objects of the pack, including the two kinds that are never deleted.
const OBJECTS: [(&str, &str, Option<&str>, &str); 8] = [
    ("v1", "ConfigMap", Some(NAMESPACE), "life-settings"),
    ("monitoring.coreos.com/v1", "PrometheusRule", Some(NAMESPACE), "life-rules"),
    ("v1", "ConfigMap", Some(NAMESPACE), "life-extra"),
    ("v1", "ConfigMap", Some(NAMESPACE), "life-adopted"),
    ("v1", "ConfigMap", Some(NAMESPACE), "life-kept"),
    ("machineconfiguration.openshift.io/v1", "MachineConfig", None, "99-worker-life"),
    ("v1", "Namespace", None, "life-space"),
    ("hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE), "kubevirt-hyperconverged"),
];

const EVERYTHING: &str = "managed: life-settings life-rules life-extra life-adopted life-kept 99-worker-life life-space \
                          kubevirt-hyperconverged; absent:; unmanaged:";
/// While everything is held or off, the deleted rules are not recreated and nothing else changes.
const HELD: &str = "managed: life-settings life-extra life-adopted life-kept 99-worker-life life-space \
                    kubevirt-hyperconverged; absent: life-rules; unmanaged:";

fn objects(running: &Running, kind: &str) -> Api<DynamicObject> {
    let (api_version, kind, namespace, _) = OBJECTS.iter().find(|object| object.1 == kind).unwrap();
    deployment::objects(&running.playground, api_version, kind, *namespace)
}

/// Which objects have our label, do not exist, and exist without our label.
async fn states(running: &Running) -> String {
    let (mut managed, mut absent, mut unmanaged) = (String::new(), String::new(), String::new());
    for (api_version, kind, namespace, name) in OBJECTS {
        let api = deployment::objects(&running.playground, api_version, kind, namespace);
        let list = match api.get_opt(name).await.unwrap() {
            None => &mut absent,
            Some(object) if object.metadata.labels.clone().unwrap_or_default().contains_key(api::MANAGED_BY.0) => {
                &mut managed
            }
            Some(_) => &mut unmanaged,
        };
        list.push_str(&format!(" {name}"));
    }
    format!("managed:{managed}; absent:{absent}; unmanaged:{unmanaged}")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_of_the_autopilot_annotation_creates_holds_and_prunes_exactly_the_right_objects() {
    let running = Running::with_pack(LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    create(&running.config_maps(), "life-adopted", json!({"data": {"first": "theirs"}})).await;
    let rules = objects(&running, "PrometheusRule");
    for (value, expected, reported) in [
        (Some("True"), EVERYTHING, None),
        (None, EVERYTHING, None),
        (Some("yes"), HELD, Some(("InvalidConfiguration", "\"yes\", which is no feature, group or asset"))),
        (Some("life-setings"), HELD, Some(("InvalidConfiguration", "did you mean life-settings"))),
        (Some("life-settings, life-extr"), HELD, Some(("InvalidConfiguration", "did you mean life-extra"))),
        (Some(" , ,"), HELD, Some(("Disabled", "stay as they are"))),
        (Some("FALSE"), HELD, Some(("Disabled", "stay as they are"))),
        (Some("life-settings, 99-machines, life-machines"), HELD, Some(("InvalidConfiguration", "\"99-machines\""))),
        (
            Some("life-observed,life-machines"),
            "managed: life-rules life-kept 99-worker-life life-space; absent: life-settings life-extra; \
             unmanaged: life-adopted kubevirt-hyperconverged",
            Some(("HandedBack", "ConfigMap openshift-cnv/life-adopted")),
        ),
        // Deleting the MachineConfig restarts nodes, so it needs an approval.
        (
            Some("life-settings"),
            "managed: life-settings life-kept 99-worker-life life-space; absent: life-rules life-extra; \
             unmanaged: life-adopted kubevirt-hyperconverged",
            Some(("ApprovalRequired", "MachineConfig 99-worker-life")),
        ),
    ] {
        running.annotate_hco("approval", Some("none")).await;
        running.annotate_hco("autopilot", Some("true")).await;
        for opt_in in ["enable-extra", "enable-machines"] {
            running.annotate_hco(opt_in, Some("true")).await;
        }
        eventually("every object is managed", async || (states(&running).await == EVERYTHING).then_some(())).await;
        quiet(&running).await;
        running.annotate_hco("approval", None).await;
        running.annotate_hco("autopilot", value).await;
        if let Some((reason, text)) = reported {
            eventually(&format!("{value:?}: {reason} {text}"), async || {
                running.events(reason).await.into_iter().find(|note| note.contains(text))
            })
            .await;
        }
        // It may be pruned already.
        let _ = rules.delete("life-rules", &DeleteParams::default()).await;
        eventually(&format!("{value:?}: {expected}"), async || (states(&running).await == expected).then_some(()))
            .await;
        quiet(&running).await;
        assert_eq!(states(&running).await, expected, "{value:?}");
    }
    // Approving exactly this deletion deletes it.
    let required =
        running.events("ApprovalRequired").await.into_iter().find(|note| note.contains("deleting it")).unwrap();
    let digest = digest_in(&required).unwrap();
    running.annotate_hco("approved", Some(digest)).await;
    let machines = objects(&running, "MachineConfig");
    eventually("the MachineConfig is deleted", async || {
        machines.get_opt("99-worker-life").await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_a_proven_origin_and_recreated_objects_are_not_deleted() {
    let running = Running::with_pack(LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    let maps = running.config_maps();
    // The predecessor created one object, and another one carries a forged origin.
    apply_as_us(&maps, &labelled("life-extra", None)).await;
    create(&maps, "life-kept", json!({"data": {"first": "theirs"}})).await;
    let forged = json!({"metadata": {"labels": {api::MANAGED_BY.0: api::MANAGED_BY.1}, "annotations": {api::annotation::ORIGIN: "created"}}});
    edit(&maps, "life-kept", forged).await;
    for name in ["life-extra", "life-kept"] {
        let text = format!("ConfigMap {NAMESPACE}/{name}: not wanted any more, but kept: it has no origin");
        eventually(&text, async || running.events("LeftBehind").await.into_iter().find(|note| note.starts_with(&text)))
            .await;
    }
    // A tombstone without an origin needs an approval, which covers only the object with this uid.
    apply_as_us(&maps, &labelled("life-old", None)).await;
    let required = eventually("the tombstone is reported", async || {
        running.events("LeftBehind").await.into_iter().find(|note| note.contains("life-old"))
    })
    .await;
    let digest = digest_in(&required).unwrap();
    maps.delete("life-old", &DeleteParams::default()).await.unwrap();
    apply_as_us(&maps, &labelled("life-old", None)).await;
    annotate(&objects(&running, "HyperConverged"), api::hco::NAME, "approved", Some(digest)).await;
    quiet(&running).await;
    for name in ["life-extra", "life-kept", "life-old"] {
        assert!(maps.get_opt(name).await.unwrap().is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_waits_while_the_autopilot_is_off_or_suspended_and_resumes_afterwards() {
    let mut running = Running::with_pack(LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    running.annotate_hco("enable-extra", Some("true")).await;
    let maps = running.config_maps();
    eventually("life-extra is created", async || maps.get_opt("life-extra").await.unwrap()).await;
    running.annotate_hco("autopilot", Some("false")).await;
    eventually("the autopilot is off", async || running.events("Disabled").await.pop()).await;
    running.annotate_hco("enable-extra", None).await;
    apply_as_us(&maps, &labelled("life-old", Some("created"))).await;
    let assert_both_exist = async || {
        for name in ["life-old", "life-extra"] {
            assert!(maps.get_opt(name).await.unwrap().is_some(), "{name}");
        }
    };
    for (value, is_restarted) in [("false", false), ("false", true), ("tru", false), ("tru", true)] {
        running.annotate_hco("autopilot", Some(value)).await;
        if is_restarted {
            running.restart();
        }
        quiet(&running).await;
        assert_both_exist().await;
    }
    running.annotate_hco("autopilot", Some("false")).await;
    quiet(&running).await;
    running.annotate_hco("autopilot", Some("life-settings")).await;
    for name in ["life-old", "life-extra"] {
        eventually(&format!("{name} is pruned"), async || maps.get_opt(name).await.unwrap().is_none().then_some(()))
            .await;
    }
    // An object that was unknown while the autopilot was off is found when it is switched on.
    running.annotate_hco("autopilot", Some("true")).await;
    eventually("life-rules is recreated", async || {
        objects(&running, "PrometheusRule").get_opt("life-rules").await.unwrap()
    })
    .await;
    running.annotate_hco("autopilot", Some("false")).await;
    quiet(&running).await;
    running.annotate_hco("autopilot", Some("life-settings")).await;
    let rules = objects(&running, "PrometheusRule");
    eventually("life-rules is pruned", async || rules.get_opt("life-rules").await.unwrap().is_none().then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_hyperconverged_prunes_nothing() {
    let running = Running::with_pack(LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    let (hco, maps) = (objects(&running, "HyperConverged"), running.config_maps());
    running.annotate_hco("enable-extra", Some("true")).await;
    eventually("life-extra is created", async || maps.get_opt("life-extra").await.unwrap()).await;
    let before = hco.get(api::hco::NAME).await.unwrap();
    hco.delete(api::hco::NAME, &DeleteParams::default()).await.unwrap();
    let metadata = ObjectMeta { name: before.metadata.name.clone(), ..ObjectMeta::default() };
    // The server's timestamps have a resolution of one second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    hco.create(&PostParams::default(), &DynamicObject { metadata, ..before }).await.unwrap();
    eventually("the object that stays is reported", async || {
        running.events("LeftBehind").await.into_iter().find(|note| note.contains("life-extra"))
    })
    .await;
    assert!(maps.get_opt("life-extra").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_stuck_on_a_finalizer_is_reported_and_completes_when_the_object_is_gone() {
    let running = Running::with_pack(LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    let maps = running.config_maps();
    let mut old = labelled("life-old", Some("created"));
    old["metadata"]["finalizers"] = json!(["example.com/keep"]);
    apply_as_us(&maps, &old).await;
    // Most finalizers finish soon, so a stuck deletion is reported after a minute.
    let note = eventually_within(Duration::from_secs(120), "the stuck deletion is reported", async || {
        running.events("DeletionStuck").await.pop()
    })
    .await;
    assert!(note.contains("life-old") && note.contains("example.com/keep"), "{note}");
    assert!(running.events("TombstoneDeleted").await.is_empty(), "the object still exists");
    edit(&maps, "life-old", json!({"metadata": {"finalizers": null}})).await;
    eventually("the deletion is reported", async || running.events("TombstoneDeleted").await.pop()).await;
}

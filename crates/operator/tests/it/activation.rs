//! What the annotation `autopilot` and the opt-ins create, hold and take away, word by word.

use crate::life::{LIFE, labelled, make_under_our_name};
use crate::operator::{NAMESPACE, Running, annotate, digest_in, edit, eventually, eventually_within, quiet};
use crate::stage::create;
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, PostParams};
use playground::deployment;
use serde_json::json;
use std::time::Duration;

/// What is looked at: the objects of the pack, and the two kinds that are never deleted.
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

const EVERYTHING: &str = "kept: life-settings life-rules life-extra life-adopted life-kept 99-worker-life life-space \
                          kubevirt-hyperconverged; gone:; theirs:";
/// While something is held or off the one that was deleted does not come back, and nothing else changes.
const HELD: &str = "kept: life-settings life-extra life-adopted life-kept 99-worker-life life-space \
                    kubevirt-hyperconverged; gone: life-rules; theirs:";

fn objects(running: &Running, kind: &str) -> Api<DynamicObject> {
    let (api_version, kind, namespace, _) = OBJECTS.iter().find(|object| object.1 == kind).unwrap();
    deployment::objects(&running.playground, api_version, kind, *namespace)
}

/// Which are kept, gone, and there without our label.
async fn there(running: &Running) -> String {
    let (mut kept, mut gone, mut theirs) = (String::new(), String::new(), String::new());
    for (api_version, kind, namespace, name) in OBJECTS {
        let api = deployment::objects(&running.playground, api_version, kind, namespace);
        let list = match api.get_opt(name).await.unwrap() {
            None => &mut gone,
            Some(object) if object.metadata.labels.clone().unwrap_or_default().contains_key(api::MANAGED_BY.0) => {
                &mut kept
            }
            Some(_) => &mut theirs,
        };
        list.push_str(&format!(" {name}"));
    }
    format!("kept:{kept}; gone:{gone}; theirs:{theirs}")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_word_in_the_annotation_creates_holds_and_prunes_what_it_says_and_nothing_else() {
    let running = Running::with_pack(LIFE.role, &["--assets-dir", LIFE.pack]).await;
    create(&running.config_maps(), "life-adopted", json!({"data": {"first": "theirs"}})).await;
    let rules = objects(&running, "PrometheusRule");
    for (value, expected, told) in [
        (Some("True"), EVERYTHING, None),
        (None, EVERYTHING, None),
        (Some("yes"), HELD, Some(("InvalidConfiguration", "\"yes\", which is no asset and no group"))),
        (Some("life-setings"), HELD, Some(("InvalidConfiguration", "did you mean life-settings"))),
        (Some("life-settings, life-extr"), HELD, Some(("InvalidConfiguration", "did you mean life-extra"))),
        (Some(" , ,"), HELD, Some(("Disabled", "stay as they are"))),
        (Some("FALSE"), HELD, Some(("Disabled", "stay as they are"))),
        (Some("life-settings, 99-machines, life-machines"), HELD, Some(("InvalidConfiguration", "\"99-machines\""))),
        (
            Some("life-observed,life-machines"),
            "kept: life-rules life-kept 99-worker-life life-space; gone: life-settings life-extra; \
             theirs: life-adopted kubevirt-hyperconverged",
            Some(("HandedBack", "ConfigMap openshift-cnv/life-adopted")),
        ),
        // Nobody named what restarts nodes, so nobody said yes to its going.
        (
            Some("life-settings"),
            "kept: life-settings life-kept 99-worker-life life-space; gone: life-rules life-extra; \
             theirs: life-adopted kubevirt-hyperconverged",
            Some(("ApprovalRequired", "MachineConfig 99-worker-life")),
        ),
    ] {
        running.annotate_hco("autopilot", Some("true")).await;
        for opt_in in ["enable-extra", "enable-machines"] {
            running.annotate_hco(opt_in, Some("true")).await;
        }
        eventually("everything is there", async || (there(&running).await == EVERYTHING).then_some(())).await;
        quiet(&running).await;
        running.annotate_hco("autopilot", value).await;
        if let Some((reason, words)) = told {
            eventually(&format!("{value:?}: {reason} {words}"), async || {
                running.events(reason).await.into_iter().find(|note| note.contains(words))
            })
            .await;
        }
        // Where it is not wanted it may be gone already.
        let _ = rules.delete("life-rules", &DeleteParams::default()).await;
        eventually(&format!("{value:?}: {expected}"), async || (there(&running).await == expected).then_some(())).await;
        quiet(&running).await;
        assert_eq!(there(&running).await, expected, "{value:?}");
    }
    // A yes to exactly that deletes it.
    let asked = running.events("ApprovalRequired").await.into_iter().find(|note| note.contains("deleting it")).unwrap();
    let digest = digest_in(&asked).unwrap();
    running.annotate_hco("approved", Some(digest)).await;
    let machines = objects(&running, "MachineConfig");
    eventually("it is deleted", async || machines.get_opt("99-worker-life").await.unwrap().is_none().then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_that_we_did_not_make_or_that_was_made_anew() {
    let running = Running::with_pack(LIFE.role, &["--assets-dir", LIFE.pack]).await;
    let maps = running.config_maps();
    // Our predecessor made one, and somebody wrote our words on another.
    make_under_our_name(&maps, &labelled("life-extra", None)).await;
    create(&maps, "life-kept", json!({"data": {"first": "theirs"}})).await;
    let forged = json!({"metadata": {"labels": {api::MANAGED_BY.0: api::MANAGED_BY.1}, "annotations": {api::annotation::ORIGIN: "created"}}});
    edit(&maps, "life-kept", forged).await;
    for name in ["life-extra", "life-kept"] {
        let words = format!("ConfigMap {NAMESPACE}/{name}: not wanted any more, but kept: it has no origin");
        eventually(&words, async || {
            running.events("LeftBehind").await.into_iter().find(|note| note.starts_with(&words))
        })
        .await;
    }
    // A tombstone waits for a yes; with it, only that very object goes.
    make_under_our_name(&maps, &labelled("life-old", None)).await;
    let waits = eventually("the tombstone is told", async || {
        running.events("LeftBehind").await.into_iter().find(|note| note.contains("life-old"))
    })
    .await;
    let digest = digest_in(&waits).unwrap();
    maps.delete("life-old", &DeleteParams::default()).await.unwrap();
    make_under_our_name(&maps, &labelled("life-old", None)).await;
    annotate(&objects(&running, "HyperConverged"), api::hco::NAME, "approved", Some(digest)).await;
    quiet(&running).await;
    for name in ["life-extra", "life-kept", "life-old"] {
        assert!(maps.get_opt(name).await.unwrap().is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_while_it_is_off_or_unclear_and_all_of_it_afterwards() {
    let mut running = Running::with_pack(LIFE.role, &["--assets-dir", LIFE.pack]).await;
    running.annotate_hco("enable-extra", Some("true")).await;
    let maps = running.config_maps();
    eventually("it is made", async || maps.get_opt("life-extra").await.unwrap()).await;
    running.annotate_hco("autopilot", Some("false")).await;
    eventually("it is off", async || running.events("Disabled").await.pop()).await;
    running.annotate_hco("enable-extra", None).await;
    make_under_our_name(&maps, &labelled("life-old", Some("created"))).await;
    let are_there = async || {
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
        are_there().await;
    }
    running.annotate_hco("autopilot", Some("false")).await;
    quiet(&running).await;
    running.annotate_hco("autopilot", Some("life-settings")).await;
    for name in ["life-old", "life-extra"] {
        eventually(&format!("{name} goes"), async || maps.get_opt(name).await.unwrap().is_none().then_some(())).await;
    }
    // What was not known to be there when it was turned off is found when it is turned on.
    running.annotate_hco("autopilot", Some("true")).await;
    eventually("all is back", async || objects(&running, "PrometheusRule").get_opt("life-rules").await.unwrap()).await;
    running.annotate_hco("autopilot", Some("false")).await;
    quiet(&running).await;
    running.annotate_hco("autopilot", Some("life-settings")).await;
    let rules = objects(&running, "PrometheusRule");
    eventually("it goes", async || rules.get_opt("life-rules").await.unwrap().is_none().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hyperconverged_made_anew_takes_nothing_back() {
    let running = Running::with_pack(LIFE.role, &["--assets-dir", LIFE.pack]).await;
    let (hco, maps) = (objects(&running, "HyperConverged"), running.config_maps());
    running.annotate_hco("enable-extra", Some("true")).await;
    eventually("it is made", async || maps.get_opt("life-extra").await.unwrap()).await;
    let before = hco.get(api::hco::NAME).await.unwrap();
    hco.delete(api::hco::NAME, &DeleteParams::default()).await.unwrap();
    let metadata = ObjectMeta { name: before.metadata.name.clone(), ..ObjectMeta::default() };
    // Times on the server are whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    hco.create(&PostParams::default(), &DynamicObject { metadata, ..before }).await.unwrap();
    eventually("it stays, and that is told", async || {
        running.events("LeftBehind").await.into_iter().find(|note| note.contains("life-extra"))
    })
    .await;
    assert!(maps.get_opt("life-extra").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_somebody_holds_up_is_told_and_is_done_only_when_it_is() {
    let running = Running::with_pack(LIFE.role, &["--assets-dir", LIFE.pack]).await;
    let maps = running.config_maps();
    let mut old = labelled("life-old", Some("created"));
    old["metadata"]["finalizers"] = json!(["example.com/keep"]);
    make_under_our_name(&maps, &old).await;
    // Most finalizers need moments, so it is told after a minute.
    let told =
        eventually_within(Duration::from_secs(120), "it is told", async || running.events("DeletionStuck").await.pop())
            .await;
    assert!(told.contains("life-old") && told.contains("example.com/keep"), "{told}");
    assert!(running.events("TombstoneDeleted").await.is_empty(), "it is not gone yet");
    edit(&maps, "life-old", json!({"metadata": {"finalizers": null}})).await;
    eventually("now it is gone", async || running.events("TombstoneDeleted").await.pop()).await;
}

//! Every object that is not wanted, and what becomes of it.

use super::{Cause, Parting, Since, part};
use crate::decision::{Effect, Tell, Verdict};
use crate::scope::{Consent, Rule};
use change::{Impact, Key, Kind, Live, ManagedFields, Reason};
use expect_test::{Expect, expect};
use serde_json::json;

const NOW: i64 = 1_800_000_000_000;

/// An object of this origin that is to go.
struct Scene {
    kind: Kind,
    cause: Cause,
    live: Live,
    impact: Impact,
    since: Option<Since<'static>>,
    stays: bool,
    prune: bool,
    frozen: bool,
    excluded: bool,
    consent: Consent,
}

impl Scene {
    fn of(origin: Option<&str>) -> Scene {
        let fields = json!([{"manager": "virt-platform-autopilot", "operation": "Apply", "time": "t",
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:platform.kubevirt.io/origin": {}}}}}]);
        let annotations = origin.map(|word| ("platform.kubevirt.io/origin".to_owned(), word.to_owned()));
        let live = Live {
            uid: "u".into(),
            resource_version: "7".into(),
            annotations: annotations.into_iter().collect(),
            managed_fields: ManagedFields::new(&fields.to_string()),
            labelled: true,
            ..Live::default()
        };
        Scene {
            kind: Kind::new("v1", "ConfigMap"),
            cause: Cause::OptedOut,
            live,
            impact: Impact::Low,
            since: None,
            stays: false,
            prune: true,
            frozen: false,
            excluded: false,
            consent: Consent::default(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Scene)) -> Scene {
        change(&mut self);
        self
    }

    fn annotate(self, key: &str, value: &str) -> Scene {
        let (key, value) = (format!("platform.kubevirt.io/{key}"), value.to_owned());
        self.with(|scene| {
            scene.live.annotations.insert(key, value);
        })
    }

    fn check(&self, expected: &Expect) {
        let key = Key { kind: self.kind.clone(), namespace: "n".into(), name: "x".into() };
        let decision = part(&self.parting(&key, Some(&self.live)), NOW);
        let told = match decision.verdict {
            Verdict::InSync => "nothing".to_owned(),
            Verdict::Hold(reason) => format!("{}: {reason}", reason.word()),
            Verdict::Do(Effect::Delete { uid, resource_version }) => {
                format!("delete {uid} in {resource_version}, tell {:?}", decision.tell.unwrap())
            }
            Verdict::Do(Effect::HandBack { patch }) => {
                assert_eq!(patch["metadata"]["resourceVersion"], "7");
                format!("hand back, tell {:?}", decision.tell.unwrap())
            }
            other => panic!("{other:?}"),
        };
        expected.assert_eq(&told);
    }

    fn parting<'a>(&'a self, key: &'a Key, live: Option<&'a Live>) -> Parting<'a> {
        Parting {
            key,
            cause: self.cause,
            live,
            impact: self.impact,
            since: self.since,
            stays: self.stays,
            prune: self.prune,
            frozen: self.frozen,
            excluded: self.excluded,
            consent: &self.consent,
            restarts: "3 nodes",
        }
    }
}

#[test]
fn what_we_made_is_deleted_and_what_we_took_over_is_given_back() {
    Scene::of(Some("created")).check(&expect!["delete u in 7, tell Pruned { dropped: [] }"]);
    Scene::of(Some("adopted")).check(&expect!["hand back, tell HandedBack"]);
    Scene::of(None).check(&expect![
        "LeftBehind: it is not wanted any more, and stays: it has no origin, so it may be somebody else's"
    ]);
    let forged = Scene::of(Some("created")).with(|scene| scene.live.managed_fields = ManagedFields::default());
    forged.check(&expect![
        "LeftBehind: it is not wanted any more, and stays: it has no origin, so it may be somebody else's"
    ]);
    Scene::of(Some("created")).with(|scene| scene.live.labelled = false).check(&expect!["nothing"]);
}

#[test]
fn nothing_that_steers_is_overridden() {
    let made = || Scene::of(Some("created"));
    made().annotate("mode", "Unmanaged").check(&expect!["UnmanagedMode: mode is unmanaged: it is left alone"]);
    made()
        .annotate("mode", "unmanagd")
        .check(&expect![[r#"InvalidMode: mode is "unmanagd"; write managed or unmanaged"#]]);
    made()
        .annotate("reconcile-paused", "true")
        .check(&expect!["Paused: it is paused; remove the annotation reconcile-paused to resume"]);
    made().with(|scene| scene.excluded = true).check(&expect!["Excluded: it is excluded by disabled-resources"]);
    made().with(|scene| scene.frozen = true).check(&expect![
        "InvalidConfiguration: an annotation of the HyperConverged cannot be read, so nothing new is created"
    ]);
    made()
        .with(|scene| scene.prune = false)
        .check(&expect!["LeftBehind: it is not wanted any more, and stays: the operator was told to delete nothing"]);
    made()
        .with(|scene| scene.stays = true)
        .check(&expect!["LeftBehind: it is not wanted any more, and stays: objects like it are never deleted"]);
}

#[test]
fn kinds_with_more_in_them_than_their_object_are_never_deleted() {
    for (api_version, kind) in [
        ("hco.kubevirt.io/v1", "HyperConverged"),
        ("hco.kubevirt.io/v1beta1", "HyperConverged"),
        ("v1", "Namespace"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("loki.grafana.com/v1", "LokiStack"),
    ] {
        for cause in [Cause::OptedOut, Cause::NotNamed, Cause::Tombstone] {
            let scene = Scene::of(Some("created"))
                .with(|scene| (scene.kind, scene.cause) = (Kind::new(api_version, kind), cause));
            scene
                .check(&expect!["LeftBehind: it is not wanted any more, and stays: objects like it are never deleted"]);
        }
    }
}

#[test]
fn a_deletion_that_restarts_nodes_waits_like_a_write() {
    let high =
        |cause: Cause| Scene::of(Some("created")).with(|scene| (scene.impact, scene.cause) = (Impact::High, cause));
    let waits = |scene: &Scene| {
        let key = Key { kind: scene.kind.clone(), namespace: "n".into(), name: "x".into() };
        match part(&scene.parting(&key, Some(&scene.live)), NOW).verdict {
            Verdict::Hold(Reason::NeedsApproval { digest, .. }) => Some(digest),
            Verdict::Do(Effect::Delete { .. }) => None,
            other => panic!("{other:?}"),
        }
    };
    for cause in [Cause::OptedOut, Cause::NotNamed, Cause::Tombstone] {
        let mut scene = high(cause);
        let digest = waits(&scene).unwrap();
        scene.consent.said = true;
        assert_eq!(waits(&scene).is_some(), cause != Cause::OptedOut, "who does not name it did not say yes to it");
        scene.consent.to_all = true;
        assert_eq!(waits(&scene).is_some(), cause == Cause::NotNamed, "no list can name a tombstone");
        scene.consent.approved.insert(digest.to_string());
        assert_eq!(waits(&scene), None);
        scene.live.uid = "another of the same name".into();
        scene.consent.rule = Rule::Always;
        assert!(waits(&scene).is_some(), "a yes is to one object");
    }
}

#[test]
fn only_a_user_of_this_hyperconverged_can_stop_wanting_something() {
    let made = |written: &str, created: i64, cause: Cause| {
        let since = Some(Since { source: "this", hco_created: Some(NOW) });
        let scene = Scene::of(Some("created")).annotate("source", written);
        scene.with(|scene| (scene.since, scene.cause, scene.live.created) = (since, cause, Some(created)))
    };
    made("this", NOW, Cause::OptedOut).check(&expect!["delete u in 7, tell Pruned { dropped: [] }"]);
    for cause in [Cause::OptedOut, Cause::NotNamed] {
        for (written, created) in [("another version", NOW), ("this", NOW - 1)] {
            made(written, created, cause).check(&expect!["LeftBehind: it is not wanted any more, and stays: no user of this HyperConverged took back that it is wanted; delete it by hand"]);
        }
    }
    let adopted = made("this", NOW - 1, Cause::OptedOut).annotate("origin", "adopted");
    adopted.check(&expect!["hand back, tell HandedBack"]);
    made("another version", NOW, Cause::Tombstone).check(&expect!["delete u in 7, tell Buried"]);
}

#[test]
fn what_users_wrote_on_it_is_told_with_its_end() {
    let made = Scene::of(Some("created")).annotate("patch", "[]");
    made.check(&expect![[r#"delete u in 7, tell Pruned { dropped: [("platform.kubevirt.io/patch", "[]")] }"#]]);
}

#[test]
fn a_tombstone_takes_only_what_is_ours() {
    let grave = |origin: Option<&str>| Scene::of(origin).with(|scene| scene.cause = Cause::Tombstone);
    grave(Some("created")).check(&expect!["delete u in 7, tell Buried"]);
    grave(Some("adopted")).check(&expect!["hand back, tell HandedBack"]);
    grave(Some("created"))
        .with(|scene| scene.live.labelled = false)
        .check(&expect!["LeftBehind: it is not wanted any more, and stays: it does not carry our label"]);
    // What the predecessor made has no origin: moving over deletes nothing until a person says so.
    let mut inherited = grave(None);
    let key = Key { kind: inherited.kind.clone(), namespace: "n".into(), name: "x".into() };
    let Verdict::Hold(Reason::LeftBehind { why }) = part(&inherited.parting(&key, Some(&inherited.live)), NOW).verdict
    else {
        panic!()
    };
    let digest = why.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    inherited.consent.said = true;
    assert!(matches!(part(&inherited.parting(&key, Some(&inherited.live)), NOW).verdict, Verdict::Hold(_)));
    inherited.consent.approved.insert(digest.to_owned());
    assert_eq!(part(&inherited.parting(&key, Some(&inherited.live)), NOW).tell, Some(Tell::Buried));
    assert_eq!(part(&inherited.parting(&key, None), NOW).verdict, Verdict::InSync);
}

#[test]
fn a_deletion_that_somebody_keeps_is_told_after_a_while() {
    let leaving = |since: i64| {
        Scene::of(Some("created"))
            .with(|scene| (scene.live.deleting, scene.live.finalizers) = (Some(since), vec!["a/b".into()]))
    };
    leaving(NOW - 1_000).check(&expect!["nothing"]);
    let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
    let scene = leaving(NOW - 1_000);
    assert_eq!(part(&scene.parting(&key, Some(&scene.live)), NOW).wake, Some(NOW + 59_000));
    leaving(NOW - 60_000)
        .check(&expect!["DeletionStuck: it was deleted and is kept by a/b; see to whoever put that there"]);
}

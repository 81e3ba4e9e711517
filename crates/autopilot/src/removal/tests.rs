//! Every object that is not wanted, and what becomes of it.

use super::{Cause, Removal, decide_removal};
use crate::decision::Verdict;
use crate::notice::ObjectNotice;
use change::consent::ApprovalPolicy;
use change::gate::{Conditions, PoolState};
use change::{Consent, Effect, Impact, Key, Kind, LeftBehind, Live, ManagedFields, Moment, Now, Reason, Restarts};
use change::{Maintenance, Window};
use expect_test::{Expect, expect};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::sync::LazyLock;

static RESTARTS: LazyLock<Restarts> = LazyLock::new(Restarts::default);

fn now() -> Now {
    Now { wall: "2027-01-15T08:00:00Z".parse().unwrap(), monotonic: Moment::default() }
}

/// So many milliseconds from now.
fn at(millis: i64) -> Timestamp {
    now().wall + SignedDuration::from_millis(millis)
}

/// An object of this origin that is to be removed.
struct Situation {
    kind: Kind,
    cause: Cause,
    live: Live,
    impact: Impact,
    source: Option<&'static str>,
    never_pruned: bool,
    prune: bool,
    suspended: Option<&'static str>,
    excluded: bool,
    governor: Option<&'static str>,
    consent: Consent,
}

impl Situation {
    fn of(origin: Option<&str>) -> Situation {
        let fields = json!([{"manager": "virt-platform-autopilot", "operation": "Apply", "time": "t",
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:platform.kubevirt.io/origin": {}}}}}]);
        let annotations = origin.map(|word| ("platform.kubevirt.io/origin".to_owned(), word.to_owned()));
        let live = Live {
            uid: "u".into(),
            resource_version: "7".into(),
            annotations: annotations.into_iter().collect(),
            managed_fields: ManagedFields::new(&fields.to_string()),
            labelled: true,
            created: Some(at(0)),
            ..Live::default()
        };
        Situation {
            kind: Kind::new("v1", "ConfigMap"),
            cause: Cause::OptedOut,
            live,
            impact: Impact::Low,
            source: None,
            never_pruned: false,
            prune: true,
            suspended: None,
            excluded: false,
            governor: None,
            consent: Consent::default(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Situation)) -> Situation {
        change(&mut self);
        self
    }

    fn annotate(self, key: &str, value: &str) -> Situation {
        let (key, value) = (format!("platform.kubevirt.io/{key}"), value.to_owned());
        self.with(|situation| {
            situation.live.annotations.insert(key, value);
        })
    }

    fn check(&self, expected: &Expect) {
        let key = Key { kind: self.kind.clone(), namespace: "n".into(), name: "x".into() };
        let decision = decide_removal(&self.removal(&key, Some(&self.live)), now());
        let printed = match decision.verdict {
            Verdict::InSync => "nothing".to_owned(),
            Verdict::Hold(reason) => format!("{}: {reason}", reason.name()),
            Verdict::Write(Effect::Delete { uid, resource_version }, _) => {
                format!("delete {uid} in {resource_version}, report {:?}", decision.notice.unwrap())
            }
            Verdict::Write(Effect::HandBack { patch }, _) => {
                assert_eq!(patch["metadata"]["resourceVersion"], "7");
                format!("hand back, report {:?}", decision.notice.unwrap())
            }
            other => panic!("{other:?}"),
        };
        expected.assert_eq(&printed);
    }

    fn removal<'a>(&'a self, key: &'a Key, live: Option<&'a Live>) -> Removal<'a> {
        Removal {
            key,
            cause: self.cause,
            live,
            impact: self.impact,
            restarts: &RESTARTS,
            source: self.source,
            hco_created: Some(at(0)),
            never_pruned: self.never_pruned,
            prune: self.prune,
            suspended: self.suspended,
            excluded: self.excluded,
            governor: self.governor,
            many: None,
            conditions: Conditions {
                consent: &self.consent,
                pool: PoolState::Ready,
                window: Window::Open,
                maintenance: &Maintenance::Always,
            },
        }
    }
}

#[test]
fn created_objects_are_deleted_and_adopted_ones_are_handed_back() {
    Situation::of(Some("created")).check(&expect!["delete u in 7, report Pruned { dropped: [] }"]);
    Situation::of(Some("adopted")).check(&expect!["hand back, report HandedBack"]);
    Situation::of(None).check(&expect![
        "LeftBehind: not wanted any more, but kept: it has no origin annotation, so we may not have created it"
    ]);
    let forged =
        Situation::of(Some("created")).with(|situation| situation.live.managed_fields = ManagedFields::default());
    forged.check(&expect![
        "LeftBehind: not wanted any more, but kept: it has no origin annotation, so we may not have created it"
    ]);
    Situation::of(Some("created")).with(|situation| situation.live.labelled = false).check(&expect!["nothing"]);
}

#[test]
fn every_annotation_that_holds_an_object_holds_its_removal() {
    let made = || Situation::of(Some("created"));
    made().annotate("mode", "Unmanaged").check(&expect!["UnmanagedMode: mode is unmanaged: the object is left alone"]);
    made()
        .annotate("mode", "unmanagd")
        .check(&expect![[r#"InvalidMode: mode is "unmanagd"; write managed or unmanaged"#]]);
    made()
        .annotate("reconcile-paused", "true")
        .check(&expect!["Paused: paused; remove the annotation reconcile-paused to resume"]);
    made()
        .annotate("reconcile-paused", "2100-01-01T00:00:00Z")
        .check(&expect!["Paused: paused; remove the annotation reconcile-paused to resume"]);
    made().annotate("reconcile-paused", "soon").check(&expect![[
        r#"InvalidPause: reconcile-paused is "soon", which counts as paused; write true, or a time such as 2027-01-31T18:00:00Z"#
    ]]);
    made().with(|situation| situation.governor = Some("density")).check(&expect!["Governed: governed by VirtPlatformConfig density; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true"]);
    made().with(|situation| situation.excluded = true).check(&expect!["Excluded: excluded by disabled-resources"]);
    made()
        .with(|situation| situation.suspended = Some("it is unclear"))
        .check(&expect!["InvalidConfiguration: it is unclear"]);
    made()
        .with(|situation| situation.prune = false)
        .check(&expect!["LeftBehind: not wanted any more, but kept: the operator runs with --prune=false"]);
    made()
        .with(|situation| situation.never_pruned = true)
        .check(&expect!["LeftBehind: not wanted any more, but kept: objects like it are never deleted"]);
}

#[test]
fn kinds_that_own_other_objects_are_never_deleted() {
    for (api_version, kind) in [
        ("hco.kubevirt.io/v1", "HyperConverged"),
        ("hco.kubevirt.io/v1beta1", "HyperConverged"),
        ("v1", "Namespace"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("loki.grafana.com/v1", "LokiStack"),
    ] {
        for cause in [Cause::OptedOut, Cause::NotNamed, Cause::Tombstone] {
            let situation = Situation::of(Some("created"))
                .with(|situation| (situation.kind, situation.cause) = (Kind::new(api_version, kind), cause));
            situation.check(&expect!["LeftBehind: not wanted any more, but kept: objects like it are never deleted"]);
        }
    }
}

#[test]
fn a_deletion_that_restarts_nodes_waits_like_a_write() {
    let high = |cause: Cause| {
        Situation::of(Some("created")).with(|situation| (situation.impact, situation.cause) = (Impact::High, cause))
    };
    let waits = |situation: &Situation| {
        let key = Key { kind: situation.kind.clone(), namespace: "n".into(), name: "x".into() };
        match decide_removal(&situation.removal(&key, Some(&situation.live)), now()).verdict {
            Verdict::Hold(Reason::NeedsApproval { digest, .. }) => Some(digest),
            Verdict::Write(Effect::Delete { .. }, _) => None,
            other => panic!("{other:?}"),
        }
    };
    for cause in [Cause::OptedOut, Cause::NotNamed, Cause::Tombstone] {
        let mut situation = high(cause);
        let digest = waits(&situation).unwrap();
        situation.consent.approved.insert(digest.unwrap());
        assert_eq!(waits(&situation), None);
        situation.live.uid = "another of the same name".into();
        assert!(waits(&situation).is_some(), "an approval is for one object");
        situation.consent.policy = ApprovalPolicy::Waived;
        assert_eq!(waits(&situation), None);
    }
}

#[test]
fn only_a_user_of_this_hyperconverged_can_opt_out() {
    let made = |written: &str, created: Timestamp, cause: Cause| {
        let situation = Situation::of(Some("created")).annotate("source", written);
        situation.with(|situation| {
            (situation.source, situation.cause, situation.live.created) = (Some("this"), cause, Some(created));
        })
    };
    made("this", at(0), Cause::OptedOut).check(&expect!["delete u in 7, report Pruned { dropped: [] }"]);
    for cause in [Cause::OptedOut, Cause::NotNamed] {
        for (written, created) in [("another release", at(0)), ("this", at(-1))] {
            made(written, created, cause).check(&expect!["LeftBehind: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand"]);
        }
    }
    let seen = made("another release", at(-1), Cause::OptedOut).with(|situation| situation.source = None);
    seen.check(&expect![
        "LeftBehind: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand"
    ]);
    let unsigned = made("this", at(0), Cause::OptedOut).with(|situation| {
        situation.live.annotations.remove("platform.kubevirt.io/source");
    });
    unsigned.check(&expect![
        "LeftBehind: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand"
    ]);
    let adopted = made("this", at(-1), Cause::OptedOut).annotate("origin", "adopted");
    adopted.check(&expect!["hand back, report HandedBack"]);
    made("another release", at(0), Cause::Tombstone).check(&expect!["delete u in 7, report TombstoneDeleted"]);
}

#[test]
fn overrides_are_reported_with_the_prune() {
    let made = Situation::of(Some("created")).annotate("patch", "[]");
    made.check(&expect![[r#"delete u in 7, report Pruned { dropped: [("platform.kubevirt.io/patch", "[]")] }"#]]);
}

#[test]
fn a_tombstone_deletes_only_what_is_ours() {
    let tombstone = |origin: Option<&str>| Situation::of(origin).with(|situation| situation.cause = Cause::Tombstone);
    tombstone(Some("created")).check(&expect!["delete u in 7, report TombstoneDeleted"]);
    tombstone(Some("adopted")).check(&expect!["hand back, report HandedBack"]);
    tombstone(Some("created"))
        .with(|situation| situation.live.labelled = false)
        .check(&expect!["LeftBehind: not wanted any more, but kept: it does not carry our label"]);
    // Objects of the predecessor have no origin: moving over deletes nothing until a person approves it.
    let mut inherited = tombstone(None);
    let key = Key { kind: inherited.kind.clone(), namespace: "n".into(), name: "x".into() };
    let Verdict::Hold(Reason::LeftBehind { why: LeftBehind::NoOriginUnlessApproved(digest) }) =
        decide_removal(&inherited.removal(&key, Some(&inherited.live)), now()).verdict
    else {
        panic!()
    };
    inherited.consent.policy = ApprovalPolicy::Waived;
    assert!(matches!(decide_removal(&inherited.removal(&key, Some(&inherited.live)), now()).verdict, Verdict::Hold(_)));
    inherited.consent.approved.insert(digest);
    assert_eq!(
        decide_removal(&inherited.removal(&key, Some(&inherited.live)), now()).notice,
        Some(ObjectNotice::TombstoneDeleted)
    );
    assert_eq!(decide_removal(&inherited.removal(&key, None), now()).verdict, Verdict::InSync);
}

#[test]
fn a_deletion_that_finalizers_delay_is_reported_after_a_minute() {
    let deleted = |since: Timestamp| {
        Situation::of(Some("created"))
            .with(|situation| (situation.live.deleting, situation.live.finalizers) = (Some(since), vec!["a/b".into()]))
    };
    deleted(at(-1_000)).check(&expect!["nothing"]);
    let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
    let situation = deleted(at(-1_000));
    assert_eq!(decide_removal(&situation.removal(&key, Some(&situation.live)), now()).wake, Some(at(59_000)));
    deleted(at(-60_000))
        .check(&expect!["DeletionStuck: deletion waits for the finalizers a/b; check their controllers"]);
}

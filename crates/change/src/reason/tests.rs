//! Every reason in words.

use super::{LeftBehind, Planned, Reason};
use crate::content::changes;
use crate::object::digest::Digest;
use crate::restart::restarts::{Restarts, Scope};
use expect_test::expect;
use serde_json::json;

/// One of each reason.
fn all() -> Vec<Reason> {
    let (why, message, value) = ("why".to_owned(), "message".to_owned(), "value".to_owned());
    let names = |count: usize| (1..=count).map(|number| format!("n{number}")).collect::<Vec<_>>();
    let (digest, restarts) = (
        Digest::of(&json!(1)),
        Restarts {
            scope: Scope::Pools(vec!["worker".into()]),
            nodes: names(1),
            at_a_time: Some(1),
            ..Restarts::default()
        },
    );
    let needed = |planned| Reason::NeedsApproval {
        digest: Some(digest),
        restarts: Box::new(restarts.clone()),
        planned: Box::new(planned),
    };
    let change = |before: i64| Planned::Change {
        changes: changes(&json!({"spec": 1}), &json!({"spec": before}), true),
        removed: Vec::new(),
    };
    let left_behind = [
        LeftBehind::NoLabel,
        LeftBehind::NoOrigin,
        LeftBehind::NoOriginUnlessApproved(digest),
        LeftBehind::NoUserAct,
        LeftBehind::PruneOff,
        LeftBehind::NeverDeleted,
        LeftBehind::OfAdvisor,
    ];
    let reasons = [
        Reason::PatchRefused { why: why.clone() },
        Reason::IgnoreFieldsRefused { why: why.clone() },
        Reason::ModeUnknown { value: value.clone() },
        Reason::Unmanaged,
        Reason::Paused,
        Reason::PauseUnclear { value },
        Reason::Excluded,
        Reason::Governed { by: "density".into() },
        needed(Planned::Create),
        needed(change(1)),
        needed(change(2)),
        needed(Planned::Delete),
        Reason::ManyDeletions { digest, objects: names(8) },
        Reason::ManyDeletions { digest, objects: names(10) },
        Reason::DeletionsUnknown { kinds: names(2) },
        Reason::PoolNotReady { why: "pool worker is updating".into(), restarts: Box::new(restarts.clone()) },
        Reason::WindowClosed { opens: None, restarts: Box::new(restarts.clone()) },
        Reason::WindowClosed { opens: Some("Sat 01:00 UTC".into()), restarts: Box::new(restarts.clone()) },
        Reason::DeletionStuck { finalizers: names(2) },
        Reason::BackupFailed { why: why.clone() },
        Reason::NoSafeBackup,
        Reason::DocumentUnreadable { field: "/data/config.yaml".into(), why },
        Reason::Fighting { actors: names(2), fields: names(2) },
        Reason::Fighting { actors: Vec::new(), fields: Vec::new() },
        Reason::DeletedAgain,
        Reason::RefusedByServer { message: message.clone() },
        Reason::WriteFailed { message },
        Reason::Suspended { why: "the HyperConverged does not exist".into() },
        Reason::ExclusionsUnclear,
        Reason::OwnersUnreadable,
        Reason::OwnedByAnother { manager: "gitops".into(), fields: names(2) },
    ];
    reasons.into_iter().chain(left_behind.map(|why| Reason::LeftBehind { why })).collect()
}

#[test]
fn every_reason_has_a_name_a_severity_and_a_message() {
    let line = |reason: &Reason| {
        let (name, severity, compliance) = (reason.name(), reason.severity(), reason.compliance());
        let message = reason.to_string().replace(&Digest::of(&json!(1)).to_string(), "DIGEST");
        format!("{name} {severity:?} {compliance:?}: {message}\n")
    };
    expect![[r#"
        InvalidPatch Warning Failed: patch refused, the last good state is kept: why
        InvalidIgnoreFields Warning Failed: ignore-fields refused, the last good state is kept: why
        InvalidMode Warning Failed: mode is "value"; write managed or unmanaged
        UnmanagedMode Normal Exempt: mode is unmanaged: the object is left alone
        Paused Normal Waiting: paused; remove the annotation reconcile-paused to resume
        InvalidPause Warning Waiting: reconcile-paused is "value", which counts as paused; write true, or a time such as 2027-01-31T18:00:00Z
        Excluded Normal Exempt: excluded by disabled-resources
        Governed Normal Exempt: governed by VirtPlatformConfig density; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true
        ApprovalRequired Warning Waiting: approval required: creating it restarts one node of pool worker: n1; run "virtpilot approve DIGEST"
        ApprovalRequired Warning Waiting: approval required: changing it restarts one node of pool worker: n1; run "virtpilot approve DIGEST"
        ApprovalRequired Warning Waiting: approval required: changing it restarts one node of pool worker: n1; run "virtpilot approve DIGEST". It would change .spec (2 -> 1)
        ApprovalRequired Warning Waiting: approval required: deleting it restarts one node of pool worker: n1; run "virtpilot approve DIGEST"
        ApprovalRequired Warning Waiting: approval required: 8 objects would be deleted at once: n1, n2, n3, n4, n5, n6, n7, n8; run "virtpilot approve DIGEST", or take back the last edit of the HyperConverged
        ApprovalRequired Warning Waiting: approval required: 10 objects would be deleted at once: n1, n2, n3, n4, n5, n6, n7, n8 and 2 more; run "virtpilot approve DIGEST", or take back the last edit of the HyperConverged
        ListIncomplete Warning Waiting: to be deleted, but it waits until n1, n2 can be listed: with the objects that a list may show, so many would be deleted at once that an approval is required
        PoolNotReady Warning Waiting: it restarts one node of pool worker: n1; pool worker is updating, so it waits until the pool is healthy
        WindowClosed Warning Waiting: it restarts one node of pool worker: n1; no window is open, because the annotation maintenance-window cannot be read; write it like "Sat,Sun 01:00-05:00 Europe/Berlin"
        WindowClosed Warning Waiting: it restarts one node of pool worker: n1; it waits for the next maintenance window, which opens Sat 01:00 UTC
        DeletionStuck Warning Failed: deletion waits for the finalizers n1, n2; check their controllers
        BackupFailed Warning Failed: not adopted, because it could not be backed up: why
        BackupFailed Warning Failed: not adopted, because a Secret has no safe place for a backup; exclude it with disabled-resources, or save it yourself and delete it, so that it is created as the asset wants it
        DocumentUnreadable Warning Failed: the document in /data/config.yaml is left as it is, because it cannot be edited: why
        ThrashingDetected Warning Waiting: n1, n2 keeps changing n1, n2; it is paused. Stop the other writer or set mode to unmanaged, then remove the annotation reconcile-paused
        ThrashingDetected Warning Waiting: another writer keeps changing it; it is paused. Stop the other writer or set mode to unmanaged, then remove the annotation reconcile-paused
        ThrashingDetected Warning Waiting: somebody keeps deleting it, so it is recreated with growing pauses; stop whoever does, or exclude it with disabled-resources
        ApplyFailed Warning Failed: the API server refused it: message
        ApplyFailed Warning Failed: it could not be written and is tried again: message
        InvalidConfiguration Warning Waiting: the HyperConverged does not exist
        InvalidConfiguration Warning Waiting: disabled-resources of the HyperConverged cannot be read, so it may be excluded; it is left as it is until that is corrected
        ApplyFailed Warning Failed: its managedFields are nested too deeply to be read, so it is not known who owns its fields; it is left as it is. Remove the deeply nested field, or exclude the object with disabled-resources
        OwnedByAnother Warning Waiting: gitops applies n1, n2; these fields are left to it
        LeftBehind Normal Waiting: not wanted any more, but kept: it does not carry our label
        LeftBehind Normal Waiting: not wanted any more, but kept: it has no origin annotation, so we may not have created it
        LeftBehind Normal Waiting: not wanted any more, but kept: it has no origin annotation, so a person has to decide; run "virtpilot approve DIGEST" to delete it
        LeftBehind Normal Waiting: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
        LeftBehind Normal Waiting: not wanted any more, but kept: the operator runs with --prune=false
        LeftBehind Normal Waiting: not wanted any more, but kept: objects like it are never deleted
        LeftBehind Normal Waiting: not wanted any more, but kept: the advisor applied some of it, too; delete it by hand
    "#]].assert_eq(&all().iter().map(line).collect::<String>());
}

#[test]
fn a_digest_is_asked_for_exactly_where_an_approval_helps() {
    let digest = Digest::of(&json!(1));
    for reason in all() {
        let is_asked = reason.to_string().contains("virtpilot approve");
        assert_eq!(reason.asked(), is_asked.then_some(&digest), "{reason}");
    }
}

#[test]
fn others_may_change_an_object_while_it_is_theirs_or_waits() {
    let left = all().into_iter().filter(Reason::leaves_object_to_others);
    let mut names: Vec<&str> = left.map(|reason| reason.name()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "InvalidMode",
            "UnmanagedMode",
            "Paused",
            "InvalidPause",
            "Excluded",
            "Governed",
            "ApprovalRequired",
            "PoolNotReady",
            "WindowClosed",
            "InvalidConfiguration",
            "ApplyFailed",
            "OwnedByAnother"
        ]
    );
    let objects = vec!["a".to_owned()];
    assert!(
        !Reason::ManyDeletions { digest: Digest::of(&json!(1)), objects }.leaves_object_to_others(),
        "what it waits for is its deletion"
    );
}

#[test]
fn nodes_that_join_do_not_ask_for_an_approval_again() {
    let needed = |what: i64, nodes: &[&str]| Reason::NeedsApproval {
        planned: Box::new(Planned::Create),
        digest: Some(Digest::of(&json!(what))),
        restarts: Box::new(Restarts {
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            ..Restarts::default()
        }),
    };
    assert!(needed(1, &["a"]).is_same(&needed(1, &["a", "b"])));
    let waiting = |why: &str, nodes: usize| {
        let restarts = Box::new(Restarts { nodes: vec!["a".to_owned(); nodes], ..Restarts::default() });
        let not_ready = Reason::PoolNotReady { why: why.to_owned(), restarts: restarts.clone() };
        (not_ready, Reason::WindowClosed { opens: Some(why.to_owned()), restarts })
    };
    let (one, more, other) = (waiting("a", 1), waiting("a", 2), waiting("b", 1));
    assert!(one.0.is_same(&more.0) && one.1.is_same(&more.1) && one.0.is_same(&other.0) && !one.1.is_same(&other.1));
    assert!(!needed(1, &["a"]).is_same(&needed(2, &["a"])) && !needed(1, &[]).is_same(&Reason::Paused));
}

#[test]
fn every_reason_is_an_event_of_the_reference() {
    for reason in all() {
        let row = api::reference::EVENTS.iter().find(|row| row.name == reason.name());
        let is_warning = row.map(|row| row.warning);
        assert_eq!(is_warning, Some(reason.severity() == super::Severity::Warning), "{}", reason.name());
    }
}

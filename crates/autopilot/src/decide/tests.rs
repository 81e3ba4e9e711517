//! One object in every situation it can be in.

use super::{Approvals, Inspected, Observed, Refused, Remembered, decide, inspect};
use crate::budget::Budget;
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::notice::ObjectNotice;
use crate::ownership::Origin;
use api::annotation::{APPLIED, ORIGIN};
use change::consent::ApprovalPolicy;
use change::gate::{Conditions, PoolState};
use change::restarts::Scope;
use change::{
    Changes, Consent, Desired, Digest, Effect, Impact, Key, Live, ManagedFields, Moment, Now, PatchableKinds, Planned,
    Reason, Restarts,
};
use change::{Maintenance, Window};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

mod one_owner;
mod take_over;
mod validity;

fn now() -> Now {
    Now { wall: "2027-01-15T08:00:00Z".parse().unwrap(), monotonic: Moment::default() }
}

fn wanted() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
        "spec": {"type": "ClusterIP", "selector": {"app": "x"}}})
}

fn our_fields() -> Value {
    json!({"f:metadata": {"f:labels": {"f:platform.kubevirt.io/managed-by": {}}, "f:annotations": {"f:platform.kubevirt.io/origin": {}}},
        "f:spec": {"f:type": {}, "f:selector": {"f:app": {}}}})
}

/// An object as it is right after our apply.
struct Situation {
    live: Live,
    /// Its managedFields.
    fields: Value,
    remembered: Option<Remembered>,
    budget: Option<Budget>,
    refused: Vec<Refused>,
    recreation: Option<Budget>,
    suspended: Option<&'static str>,
    impact: Impact,
    consent: Consent,
    patchable: PatchableKinds,
    restarts: Restarts,
    inspected: Option<Inspected>,
    source: &'static str,
    approvals: Approvals<'static>,
}

impl Situation {
    fn settled() -> Situation {
        let fields = json!([{"manager": "virt-platform-autopilot", "operation": "Apply", "time": "t1", "fieldsV1": our_fields()}]);
        let claim = ManagedFields::new(&fields.to_string()).claim("virt-platform-autopilot").unwrap();
        let annotations = BTreeMap::from([
            (APPLIED.to_owned(), Digest::of(&wanted()).to_string()),
            ("platform.kubevirt.io/budget".to_owned(), Budget::full(now().wall).to_string()),
            ("platform.kubevirt.io/origin".to_owned(), "created".to_owned()),
            ("platform.kubevirt.io/source".to_owned(), "this".to_owned()),
        ]);
        Situation {
            live: Live {
                uid: "u".into(),
                resource_version: "7".into(),
                annotations,
                labelled: true,
                ..Live::default()
            },
            fields,
            budget: None,
            refused: Vec::new(),
            recreation: None,
            suspended: None,
            remembered: Some(Remembered {
                digest: Digest::of(&wanted()),
                claim,
                beside: None,
                uid: "u".into(),
                origin: Some(Origin::Created),
            }),
            inspected: None,
            source: "this",
            approvals: Approvals { state: Some("state"), used: 0, unused: None },
            impact: Impact::Low,
            consent: Consent::default(),
            patchable: PatchableKinds::none(),
            restarts: Restarts {
                scope: Scope::Pools(vec!["worker".into()]),
                nodes: vec!["w0".into()],
                ..Restarts::default()
            },
        }
    }

    fn annotate(mut self, key: &str, value: &str) -> Situation {
        self.live.annotations.insert(format!("platform.kubevirt.io/{key}"), value.into());
        self
    }

    /// Somebody sets the type by a plain update, and so takes it from us.
    fn edited(mut self) -> Situation {
        self.fields[0]["fieldsV1"]["f:spec"] = json!({"f:selector": {"f:app": {}}});
        let other = json!({"manager": "kubectl-edit", "operation": "Update", "time": "t2", "fieldsV1": {"f:spec": {"f:type": {}}}});
        self.fields.as_array_mut().unwrap().push(other);
        self
    }

    fn decide(&self) -> Decision {
        let key = Key::of(&wanted()).unwrap();
        let live = Live { managed_fields: ManagedFields::new(&self.fields.to_string()), ..self.live.clone() };
        decide(&self.observed(&key, &Desired::of(&wanted()), Some(&live)), now())
    }

    /// Somebody approves what is asked for.
    fn approve(&mut self) {
        let Verdict::Hold(Reason::NeedsApproval { digest, .. }) = self.decide().verdict else { panic!() };
        self.consent.approved.insert(digest.unwrap());
    }

    fn decide_absent(&self) -> Decision {
        let key = Key::of(&wanted()).unwrap();
        decide(&self.observed(&key, &Desired::of(&wanted()), None), now())
    }

    fn observed<'a>(&'a self, key: &'a Key, wanted: &'a Desired, live: Option<&'a Live>) -> Observed<'a> {
        Observed {
            key,
            desired: wanted,
            impact: self.impact,
            live,
            remembered: self.remembered.as_ref(),
            budget: self.budget,
            refused: &self.refused,
            unanswered: false,
            recreation: self.recreation,
            dropped: &[],
            approvals: self.approvals,
            half_done: None,
            suspended: self.suspended,
            patchable: &self.patchable,
            conditions: Conditions {
                consent: &self.consent,
                pool: PoolState::Ready,
                window: Window::Open,
                maintenance: &Maintenance::Always,
            },
            excluded: false,
            governor: None,
            is_shared_with_advisor: false,
            exclusions_unclear: false,
            restarts: &self.restarts,
            source: self.source,
            inspected: self.inspected.as_ref(),
            is_verified: true,
            documents: &[],
            had_documents: false,
        }
    }
}

fn applied(decision: &Decision) -> Value {
    match &decision.verdict {
        Verdict::Write(Effect::Apply { object, .. }, _) => object.value(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_object_that_is_absent_is_created_with_our_label() {
    let decision = Situation::settled().decide_absent();
    let object = applied(&decision);
    assert_eq!(object["metadata"]["labels"]["platform.kubevirt.io/managed-by"], "virt-platform-autopilot");
    assert_eq!(object["spec"], wanted()["spec"]);
    assert_eq!(decision.notice, Some(ObjectNotice::Applied));
}

#[test]
fn an_object_that_somebody_keeps_deleting_waits_for_budget() {
    let mut situation = Situation::settled();
    situation.recreation = Some(Budget::full(now().wall));
    let mut creations = 0;
    while let Verdict::Write(_, PendingWrite::Apply { recreation, .. }) = situation.decide_absent().verdict {
        situation.recreation = recreation;
        creations += 1;
    }
    assert_eq!(creations, 10);
    let decision = situation.decide_absent();
    assert_eq!(
        (decision.verdict, decision.wake),
        (Verdict::Hold(Reason::DeletedAgain), Some(now().wall_after(Duration::from_secs(6))))
    );
}

#[test]
fn while_suspended_nothing_is_created_and_existing_objects_are_defended() {
    let situation = Situation { suspended: Some("unclear"), ..Situation::settled().edited() };
    assert_eq!(situation.decide_absent().verdict, Verdict::Hold(Reason::Suspended { why: "unclear".into() }));
    assert_eq!(applied(&situation.decide())["spec"]["type"], "ClusterIP");
}

#[test]
fn after_our_apply_there_is_nothing_left_to_do() {
    assert_eq!(Situation::settled().decide().verdict, Verdict::InSync);
    // A write of the same value leaves our entry alone, and so do other managers' own fields.
    let mut shared = Situation::settled();
    let other =
        json!({"manager": "kubectl", "operation": "Update", "time": "t2", "fieldsV1": {"f:spec": {"f:type": {}}}});
    shared.fields.as_array_mut().unwrap().push(other);
    assert_eq!(shared.decide().verdict, Verdict::InSync);
}

#[test]
fn a_hand_edit_is_corrected_and_its_author_and_fields_are_named() {
    let decision = Situation::settled().edited().decide();
    let object = applied(&decision);
    assert_eq!(object["spec"]["type"], "ClusterIP");
    assert_eq!(
        object["metadata"]["annotations"]["platform.kubevirt.io/budget"],
        Budget::full(now().wall).spend(now().wall).unwrap().to_string()
    );
    let expected = r#"kubectl-edit changed .spec.type; the drift was corrected: .spec.type is "ClusterIP" again"#;
    assert_eq!(decision.notice.as_ref().unwrap().to_string(), expected);
}

#[test]
fn an_apply_under_our_own_name_is_seen_by_its_time() {
    let mut situation = Situation::settled();
    situation.fields[0]["time"] = json!("t2");
    assert!(matches!(situation.decide().notice, Some(ObjectNotice::Corrected { .. })));
}

#[test]
fn a_fight_is_paused_when_the_budget_is_spent() {
    let mut spent = Budget::full(now().wall);
    while let Some(left) = spent.spend(now().wall) {
        spent = left;
    }
    let decision = Situation::settled().annotate("budget", &spent.to_string()).edited().decide();
    let Verdict::Write(Effect::Annotate { annotations, resource_version }, _) = decision.verdict else { panic!() };
    assert_eq!(annotations["platform.kubevirt.io/reconcile-paused"].as_deref(), Some("true"));
    assert_eq!(resource_version, "7");
    let Some(ObjectNotice::Held(Reason::Fighting { actors, .. })) = decision.notice else { panic!() };
    assert_eq!(actors, ["kubectl-edit"]);
}

#[test]
fn mode_and_pause_annotations_hold_an_object() {
    let held = |key: &str, value: &str| match Situation::settled().annotate(key, value).edited().decide().verdict {
        Verdict::Hold(reason) => reason.name(),
        other => panic!("{other:?}"),
    };
    assert_eq!(held("mode", "unmanaged"), "UnmanagedMode");
    assert_eq!(held("mode", "none"), "InvalidMode");
    assert_eq!(held("reconcile-paused", "true"), "Paused");
    assert_eq!(held("reconcile-paused", "soon"), "InvalidPause");
}

#[test]
fn a_pause_with_an_end_wakes_up_and_ends() {
    let until = |time: &str| Situation::settled().annotate("reconcile-paused", time).edited().decide();
    assert_eq!(until("2100-01-01T00:00:00Z").wake, Some("2100-01-01T00:00:00Z".parse().unwrap()));
    assert!(matches!(until("2100-01-01T00:00:00Z").verdict, Verdict::Hold(Reason::Paused)));
    assert_eq!(applied(&until("2020-01-01T00:00:00Z"))["spec"]["type"], "ClusterIP");
}

#[test]
fn a_refused_override_is_reported_and_the_last_good_state_is_defended() {
    let good = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
    for (key, wrong) in
        [("patch", "[{}]"), ("patch", r#"[{"op": "remove", "path": "/kind"}]"#), ("ignore-fields", "/metadata")]
    {
        let bare = Situation::settled().annotate(key, wrong);
        assert!(matches!(bare.decide().verdict, Verdict::Hold(_)), "{wrong}: it is in sync, but not with the override");
        let edited = bare.edited().decide();
        assert_eq!(applied(&edited)["spec"]["type"], "ClusterIP", "{wrong}");
        assert!(
            edited.refused.is_some() && matches!(edited.notice, Some(ObjectNotice::Corrected { .. })),
            "{edited:?}"
        );
        let after_good = Situation::settled().annotate("last-good-patch", good).annotate(key, wrong).edited().decide();
        assert_eq!(applied(&after_good)["spec"]["sessionAffinity"], "ClientIP", "{wrong}");
        assert_eq!(applied(&after_good)["metadata"]["annotations"]["platform.kubevirt.io/last-good-patch"], good);
        // The recorded override is judged like any other.
        let evil = r#"[{"op": "replace", "path": "/metadata/name", "value": "x"}]"#;
        let tampered = Situation::settled().annotate("last-good-patch", evil).annotate(key, wrong).edited().decide();
        assert_eq!(applied(&tampered)["metadata"]["name"], "s", "{wrong}");
    }
}

#[test]
fn a_patch_the_server_refuses_is_refused() {
    let patch = r#"[{"op": "add", "path": "/spec/unknown", "value": 1}]"#;
    let mut situation = Situation::settled().annotate("patch", patch);
    let decision = situation.decide();
    let Verdict::Write(Effect::Apply { object, .. }, PendingWrite::Apply { digest, .. }) = &decision.verdict else {
        panic!()
    };
    assert_eq!(object.value()["spec"]["unknown"], 1);
    situation.refused = vec![Refused { digest: *digest, message: "unknown field".into() }];
    assert_eq!(situation.decide().verdict, Verdict::Hold(Reason::PatchRefused { why: "unknown field".into() }));
    assert_eq!(applied(&situation.edited().decide())["spec"].get("unknown"), None);
}

#[test]
fn an_apply_the_server_refuses_is_reported_and_tried_again() {
    let mut situation = Situation::settled().edited();
    situation.refused = vec![Refused { digest: Digest::of(&wanted()), message: "no".into() }];
    let decision = situation.decide();
    assert_eq!(applied(&decision)["spec"]["type"], "ClusterIP");
    assert_eq!(decision.refused, Some(Reason::RefusedByServer { message: "no".into() }));
    assert_eq!(situation.decide_absent().refused, decision.refused, "also where it does not exist");
}

#[test]
fn a_refusal_that_may_pass_takes_nothing_from_the_user() {
    // The last good override is the one that is refused now.
    let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
    let mut situation = Situation::settled().annotate("patch", patch).annotate("last-good-patch", patch).edited();
    let Verdict::Write(_, PendingWrite::Apply { digest, .. }) = situation.decide().verdict else { panic!() };
    situation.refused = vec![Refused { digest, message: "not now".into() }];
    let decision = situation.decide();
    assert_eq!(applied(&decision)["spec"]["sessionAffinity"], "ClientIP");
    assert_eq!(decision.refused, Some(Reason::PatchRefused { why: "not now".into() }));
}

#[test]
fn an_honoured_override_that_does_not_fit_any_more_is_not_dropped() {
    let patch = r#"[{"op": "replace", "path": "/spec/was/here", "value": 1}]"#;
    let situation = Situation::settled().annotate("patch", patch).annotate("last-good-patch", patch).edited();
    assert!(matches!(situation.decide().verdict, Verdict::Hold(Reason::PatchRefused { .. })));
}

#[test]
fn removing_the_budget_annotation_gives_no_new_budget() {
    let mut spent = Budget::full(now().wall);
    while let Some(left) = spent.spend(now().wall) {
        spent = left;
    }
    let mut situation = Situation::settled().edited();
    situation.live.annotations.remove("platform.kubevirt.io/budget");
    situation.budget = Some(spent);
    assert!(matches!(situation.decide().verdict, Verdict::Write(Effect::Annotate { .. }, _)));
}

#[test]
fn fields_that_another_manager_applies_are_left_to_it() {
    let mut situation = Situation::settled().edited();
    situation.fields[1]["operation"] = json!("Apply");
    situation.fields[1]["manager"] = json!("gitops");
    let expected = Reason::OwnedByAnother { manager: "gitops".into(), fields: vec![".spec.type".into()] };
    assert_eq!(situation.decide().verdict, Verdict::Hold(expected));
}

#[test]
fn a_patch_changes_the_desired_state_and_is_not_drift() {
    let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
    let decision = Situation::settled().annotate("patch", patch).decide();
    assert_eq!(applied(&decision)["spec"]["sessionAffinity"], "ClientIP");
    assert_eq!(
        applied(&decision)["metadata"]["annotations"].get("platform.kubevirt.io/patch"),
        None,
        "it stays the user's"
    );
    assert_eq!(decision.notice, Some(ObjectNotice::Applied));
}

#[test]
fn an_ignored_field_is_released_first_and_then_left_out() {
    let mut situation = Situation::settled().annotate("ignore-fields", "/spec/selector/app");
    let Verdict::Write(Effect::JsonPatch { patch }, _) = situation.decide().verdict else { panic!() };
    assert_eq!(patch[0], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
    let left = json!({"f:metadata": our_fields()["f:metadata"], "f:spec": {"f:type": {}}});
    assert_eq!(patch[1], json!({"op": "replace", "path": "/metadata/managedFields/0/fieldsV1", "value": left}));
    situation.fields[0]["fieldsV1"] = left;
    let decision = situation.decide();
    assert_eq!(applied(&decision)["spec"], json!({"type": "ClusterIP"}));
    let annotations = &applied(&decision)["metadata"]["annotations"];
    assert_eq!(annotations["platform.kubevirt.io/last-good-ignore-fields"], "/spec/selector/app", "for a restart");
}

#[test]
fn a_restart_costs_one_apply_that_changes_and_reports_nothing() {
    let mut situation = Situation::settled();
    situation.remembered = None;
    let decision = situation.decide();
    assert_eq!(decision.notice, None);
    let annotations = &applied(&decision)["metadata"]["annotations"];
    assert_eq!(annotations["platform.kubevirt.io/budget"], situation.live.annotations["platform.kubevirt.io/budget"]);
    assert_eq!(annotations[APPLIED], situation.live.annotations[APPLIED]);
}

#[test]
fn fields_taken_while_we_were_down_are_drift_and_cost_budget() {
    let mut situation = Situation::settled().edited();
    situation.remembered = None;
    let decision = situation.decide();
    let expected = r#"kubectl-edit changed .spec.type; the drift was corrected: .spec.type is "ClusterIP" again"#;
    assert_eq!(decision.notice.as_ref().unwrap().to_string(), expected);
    let left = Budget::full(now().wall).spend(now().wall).unwrap().to_string();
    assert_eq!(applied(&decision)["metadata"]["annotations"]["platform.kubevirt.io/budget"], left);
}

#[test]
fn nodes_never_restart_without_approval() {
    let high = |change: &dyn Fn(&mut Situation)| {
        let mut situation = Situation { impact: Impact::High, ..Situation::settled() };
        situation.remembered = None;
        change(&mut situation);
        // An approval request shows what would change, so the object was inspected.
        inspected(situation, "NodePort")
    };
    let waits = |decision: &Decision| matches!(&decision.verdict, Verdict::Hold(Reason::NeedsApproval { restarts, .. }) if restarts.nodes == ["w0"]);
    assert!(waits(&high(&|_| {}).decide_absent()), "creating it waits");
    assert!(waits(&high(&|_| {}).decide()), "a value that changed while nobody watched may run on the nodes by now");
    let unchanged = Situation { impact: Impact::High, remembered: None, ..Situation::settled() };
    assert!(!waits(&inspected(unchanged, "ClusterIP").decide()), "an apply that changes nothing waits for nobody");
    let applied_other = |situation: &mut Situation| {
        situation.live.annotations.insert(APPLIED.to_owned(), "sha256:other".into());
    };
    let forget = |situation: &mut Situation| {
        situation.live.annotations.remove(APPLIED);
    };
    let waive = |situation: &mut Situation| situation.consent.policy = ApprovalPolicy::Waived;
    let with = |changes: &[&dyn Fn(&mut Situation)]| {
        waits(&high(&|situation| changes.iter().for_each(|change| change(situation))).decide())
    };
    assert!(with(&[&applied_other]), "another content waits");
    let mut same = Situation { impact: Impact::High, remembered: None, ..Situation::settled() };
    applied_other(&mut same);
    assert!(!waits(&inspected(same, "ClusterIP").decide()), "what changes no value restarts nothing");
    assert!(!with(&[&applied_other, &waive]), "unless nobody wants to be asked");
    let mut approved = high(&applied_other);
    approved.approve();
    assert_eq!(approved.decide().approval, Some(0), "or somebody approved exactly that");
    approved.approvals.used = 1;
    assert!(waits(&approved.decide()), "an approval is used once");
    approved.approvals.unused = Some(0);
    assert_eq!(approved.decide().approval, Some(0), "unless its write was not made");
    approved.approvals.used = 0;
    approved.live.uid = "v".into();
    assert!(waits(&approved.decide()), "an approval is for one object");
    let other_version = |situation: &mut Situation| situation.source = "another version of the asset";
    let mut upgraded = Situation { impact: Impact::High, remembered: None, ..Situation::settled() };
    other_version(&mut upgraded);
    assert!(!waits(&inspected(upgraded, "ClusterIP").decide()), "what runs so already is not asked about");
    assert!(with(&[&applied_other, &other_version]), "what another version of ourselves changes waits");
    assert!(!with(&[&forget, &waive]), "whose word is lost is still ours");
    // What somebody changed while nobody watched may run by now.
    let edited = Situation { impact: Impact::High, ..Situation::settled().edited() };
    assert!(!waits(&edited.decide()), "a change that was seen is put back before the nodes follow");
    assert!(waits(&inspected(Situation { remembered: None, ..edited }, "NodePort").decide()));
}

/// The object as somebody else made it: without our label, our annotations and our claim.
fn foreign(impact: Impact) -> Situation {
    let mut situation = Situation { impact, remembered: None, fields: json!([]), ..Situation::settled() };
    (situation.live.annotations, situation.live.labelled) = (BTreeMap::new(), false);
    situation
}

/// The object as our predecessor left it: with our label and our claim, and no word of ours.
fn inherited(impact: Impact) -> Situation {
    let mut situation = Situation { impact, remembered: None, ..Situation::settled() };
    situation.live.annotations = BTreeMap::new();
    situation.fields[0]["fieldsV1"]["f:metadata"] = json!({"f:labels": {"f:platform.kubevirt.io/managed-by": {}}});
    situation
}

/// Looks at its content, in which the type is this.
fn inspected(mut situation: Situation, service_type: &str) -> Situation {
    let mut content = wanted();
    content["metadata"]["resourceVersion"] = json!("7");
    content["spec"]["type"] = json!(service_type);
    let key = Key::of(&wanted()).unwrap();
    let inspected = inspect(&situation.observed(&key, &Desired::of(&wanted()), Some(&situation.live)), &content);
    situation.inspected = Some(inspected.unwrap());
    situation
}

#[test]
fn a_foreign_object_is_backed_up_before_it_is_adopted() {
    let decision = foreign(Impact::Low).decide();
    assert_eq!(
        decision.notice,
        Some(ObjectNotice::Adopted { changes: Changes::default() }),
        "what it changes is known from the backup"
    );
    let Verdict::Write(Effect::Apply { object, .. }, PendingWrite::Apply { origin, adopts, .. }) = &decision.verdict
    else {
        panic!("{decision:?}")
    };
    assert!(adopts);
    assert_eq!(
        (object.value()["metadata"]["annotations"][ORIGIN].as_str(), *origin),
        (Some("adopted"), Some(Origin::Adopted))
    );
    let suspended = Situation { suspended: Some("unclear"), ..foreign(Impact::Low) };
    assert_eq!(
        suspended.decide().verdict,
        Verdict::Hold(Reason::Suspended { why: "unclear".into() }),
        "not while it is unclear what is wanted"
    );
}

#[test]
fn adopting_an_object_that_restarts_nodes_waits_for_approval() {
    let situation = foreign(Impact::High);
    assert_eq!(situation.decide().verdict, Verdict::Inspect);
    let mut situation = inspected(situation, "NodePort");
    let Verdict::Hold(Reason::NeedsApproval { planned, .. }) = situation.decide().verdict else { panic!() };
    let Planned::Change { changes, .. } = *planned else { panic!() };
    assert_eq!(changes.to_string(), r#".spec.type ("NodePort" -> "ClusterIP")"#);
    situation.approve();
    assert!(matches!(situation.decide().verdict, Verdict::Write(_, PendingWrite::Apply { adopts: true, .. })));
}

#[test]
fn an_origin_that_somebody_else_wrote_does_not_count() {
    let mut situation = Situation::settled();
    situation.live.annotations.insert(ORIGIN.to_owned(), "adopted".into());
    situation.fields[0]["fieldsV1"]["f:metadata"]["f:annotations"] = json!({});
    let word = |situation: &Situation| applied(&situation.decide())["metadata"]["annotations"][ORIGIN].clone();
    assert_eq!(word(&situation), "created", "while we remember, we know");
    situation.remembered = None;
    situation.live.annotations.insert(ORIGIN.to_owned(), "created".into());
    assert_eq!(word(&situation), "adopted", "after a start only our own word counts");
}

#[test]
fn somebody_who_keeps_recreating_an_object_is_not_followed_for_ever() {
    let mut situation = foreign(Impact::Low);
    situation.recreation = Some(Budget::full(now().wall));
    let mut adoptions = 0;
    loop {
        let decision = situation.decide();
        match decision.verdict {
            Verdict::Write(_, PendingWrite::Apply { recreation, adopts: true, .. }) => {
                (situation.recreation, adoptions) = (recreation, adoptions + 1);
            }
            Verdict::Hold(Reason::DeletedAgain) => break assert!(decision.wake.is_some()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(adoptions, 10);
}

#[test]
fn nothing_restarts_nodes_while_suspended() {
    let mut situation = Situation { impact: Impact::High, suspended: Some("unclear"), ..Situation::settled() };
    situation.live.annotations.insert(APPLIED.to_owned(), "sha256:other".into());
    (situation.remembered, situation.consent.policy) = (None, ApprovalPolicy::Waived);
    assert_eq!(situation.decide().verdict, Verdict::Inspect, "what it changes decides");
    let situation = inspected(situation, "NodePort");
    assert_eq!(situation.decide().verdict, Verdict::Hold(Reason::Suspended { why: "unclear".into() }));
}

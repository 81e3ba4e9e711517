//! Objects of the predecessor.

use super::*;

#[test]
fn an_object_of_the_predecessor_is_taken_over() {
    let situation = inherited(Impact::Low);
    assert_eq!(situation.decide().verdict, Verdict::Inspect, "the difference is reported, so it is inspected");
    let situation = inspected(situation, "NodePort");
    let decision = situation.decide();
    let Some(ObjectNotice::TakenOver { changes }) = &decision.notice else { panic!("{decision:?}") };
    assert_eq!(changes.to_string(), r#".spec.type ("NodePort" -> "ClusterIP")"#);
    assert_eq!(applied(&decision)["metadata"]["annotations"].get(ORIGIN), None, "it is not known who made it");
}

#[test]
fn moving_over_writes_nothing_that_restarts_nodes() {
    let mut waived = inherited(Impact::High);
    waived.consent.policy = ApprovalPolicy::Waived;
    let mut same = inspected(waived, "ClusterIP");
    let Verdict::TakeOver { digest } = same.decide().verdict else { panic!() };
    let claim = ManagedFields::new(&same.fields.to_string()).claim("virt-platform-autopilot").unwrap();
    same.remembered = Some(Remembered { digest, claim, beside: None, uid: "u".into(), origin: None });
    assert_eq!(same.decide().verdict, Verdict::InSync);
    same.consent.policy = ApprovalPolicy::Required;
    assert!(
        matches!(same.edited().decide().notice, Some(ObjectNotice::Corrected { .. })),
        "from then on it is defended"
    );

    let mut waived = inherited(Impact::High);
    waived.consent.policy = ApprovalPolicy::Waived;
    let mut other = inspected(waived, "NodePort");
    assert!(
        matches!(other.decide().verdict, Verdict::Hold(Reason::NeedsApproval { .. })),
        "even where nobody wants to be asked"
    );
    other.approve();
    assert!(matches!(other.decide().notice, Some(ObjectNotice::TakenOver { .. })));
}

#[test]
fn an_object_with_fields_of_others_is_not_taken_over_without_a_write() {
    let mut situation = inherited(Impact::High);
    situation.fields[0]["fieldsV1"]["f:spec"] = json!({"f:type": {}});
    assert!(matches!(inspected(situation, "ClusterIP").decide().verdict, Verdict::Hold(Reason::NeedsApproval { .. })));
}

#[test]
fn after_a_take_over_without_a_write_every_other_content_still_waits_for_approval() {
    let mut situation = inspected(inherited(Impact::High), "NodePort");
    let claim = ManagedFields::new(&situation.fields.to_string()).claim("virt-platform-autopilot").unwrap();
    situation.remembered =
        Some(Remembered { digest: Digest::of(&json!("before")), claim, beside: None, uid: "u".into(), origin: None });
    situation.consent.policy = ApprovalPolicy::Waived;
    assert!(matches!(situation.decide().verdict, Verdict::Hold(Reason::NeedsApproval { .. })));
}

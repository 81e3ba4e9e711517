//! The annotations of `change/tests-data` as the whole decision sees them, and those on the HyperConverged.

use crate::decide::{Observed, decide};
use crate::decision::{PendingWrite, Verdict};
use crate::exclusion::Exclusions;
use crate::gated::Approvals;
use crate::guards::{ExclusionGuard, ExclusionGuards};
use change::gate::{Conditions, PoolState};
use change::{
    Consent, Desired, Digest, Effect, Impact, Key, Live, ManagedFields, Moment, Now, PatchableKinds, Restarts,
};
use change::{Maintenance, Window};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) const PREFIX: &str = api::annotation::PREFIX;

#[derive(Deserialize)]
struct Hostile {
    name: String,
    on: String,
    key: String,
    value: Option<String>,
    #[serde(default)]
    pieces: Vec<Piece>,
    #[serde(default)]
    with: BTreeMap<String, String>,
    outcome: String,
    /// Fields that have one owner.
    #[serde(default)]
    atomic: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Times { text: String, times: usize },
}

impl Hostile {
    fn text(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Times { text, times } => text.repeat(*times),
        });
        self.value.clone().unwrap_or_else(|| pieces.collect())
    }

    fn annotations(&self) -> BTreeMap<String, String> {
        let others = self.with.iter().map(|(key, value)| (key.clone(), value.clone()));
        others.chain([(self.key.clone(), self.text())]).map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect()
    }
}

pub(crate) fn objects() -> &'static BTreeMap<String, Value> {
    static OBJECTS: LazyLock<BTreeMap<String, Value>> =
        LazyLock::new(|| serde_saphyr::from_str(include_str!("../../change/tests-data/objects.yaml")).unwrap());
    &OBJECTS
}

fn hostile(exclusions: bool) -> Vec<Hostile> {
    let all: Vec<Hostile> = serde_saphyr::from_str(include_str!("../../change/tests-data/hostile.yaml")).unwrap();
    all.into_iter().filter(|case| (case.key == "disabled-resources") == exclusions).collect()
}

/// The decision about an object of ours with these annotations, right after a start.
pub(crate) fn decided(wanted: &Value, annotations: BTreeMap<String, String>) -> (Verdict, bool) {
    decided_with(wanted, annotations, &[])
}

/// The same, where these fields have one owner.
fn decided_with(wanted: &Value, annotations: BTreeMap<String, String>, atomic: &[String]) -> (Verdict, bool) {
    let (key, desired, consent) = (Key::of(wanted).unwrap(), Desired::of(wanted), Consent::default());
    let mut annotations = annotations;
    annotations.insert(api::annotation::ORIGIN.to_owned(), "created".to_owned());
    let mut fields = json!({"f:metadata": {"f:annotations": {format!("f:{}", api::annotation::ORIGIN): {}}}});
    for field in atomic {
        let steps = field.split('/').skip(1);
        *steps.fold(&mut fields, |fields, step| &mut fields[format!("f:{step}")]) = json!({});
    }
    let mut theirs = fields_of(wanted);
    for field in atomic {
        let steps = field.split('/').skip(1);
        *steps.fold(&mut theirs, |fields, step| &mut fields[format!("f:{step}")]) = json!({});
    }
    let entries = json!([
        {"manager": api::FIELD_MANAGER, "operation": "Apply", "time": "t", "fieldsV1": fields},
        {"manager": "kubectl", "operation": "Update", "time": "t", "fieldsV1": theirs},
    ]);
    let (uid, managed_fields) = ("u".into(), ManagedFields::new(&entries.to_string()));
    let live =
        Live { uid, resource_version: "1".into(), annotations, managed_fields, labelled: true, ..Live::default() };
    let observed = Observed {
        key: &key,
        desired: &desired,
        impact: Impact::Low,
        restarts: &Restarts::default(),
        source: "",
        live: Some(&live),
        remembered: None,
        inspected: None,
        is_verified: true,
        documents: &[],
        had_documents: false,
        budget: None,
        recreation: None,
        dropped: &[],
        refused: &[],
        unanswered: false,
        approvals: Approvals::default(),
        half_done: None,
        suspended: None,
        excluded: false,
        governor: None,
        is_shared_with_advisor: false,
        exclusions_unclear: false,
        patchable: &PatchableKinds::none(),
        conditions: Conditions {
            consent: &consent,
            pool: PoolState::Ready,
            window: Window::Open,
            maintenance: &Maintenance::Always,
        },
    };
    let now = Now { wall: "2027-01-15T08:00:00Z".parse().unwrap(), monotonic: Moment::default() };
    let decision = decide(&observed, now);
    (decision.verdict, decision.refused.is_some())
}

/// The fields of an object in which every map can have several owners.
fn fields_of(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten();
    Value::Object(fields.map(|(key, below)| (format!("f:{key}"), fields_of(below))).collect())
}

/// What is applied, without what we add to every object.
pub(crate) fn applied(verdict: Verdict) -> Option<Value> {
    let Verdict::Write(Effect::Apply { object, .. }, PendingWrite::Apply { digest, .. }) = verdict else {
        return None;
    };
    let mut object = object.value();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !["uid", "resourceVersion"].contains(&key.as_str()));
    for key in ["labels", "annotations"] {
        let entries = metadata[key].as_object_mut().unwrap();
        entries.retain(|key, _| !key.starts_with(PREFIX));
        if entries.is_empty() {
            metadata.remove(key);
        }
    }
    assert_eq!(Digest::of(&object), digest);
    Some(object)
}

#[test]
fn an_object_with_a_hostile_annotation_is_managed_as_if_it_were_absent() {
    let objects = objects();
    for case in hostile(false) {
        let bare = &objects[&case.on];
        let (verdict, refused) = decided_with(bare, case.annotations(), &case.atomic);
        assert_eq!(refused, case.outcome == "refused", "{}", case.name);
        match case.outcome.as_str() {
            "held" => assert!(matches!(verdict, Verdict::Hold(_)), "{}", case.name),
            "refused" => assert_eq!(applied(verdict).as_ref(), Some(bare), "{}", case.name),
            _ => assert_eq!(Key::of(&applied(verdict).unwrap()), Key::of(bare), "{}", case.name),
        }
    }
}

fn is_broken(case: &Hostile, guards: ExclusionGuards) -> bool {
    matches!(Exclusions::read_with(Some(&case.text()), guards), Exclusions::Broken(_))
}

#[test]
fn every_broken_list_of_exclusions_is_seen() {
    let cases = hostile(true);
    assert!(cases.len() >= 20, "{}", cases.len());
    for case in &cases {
        assert!(is_broken(case, ExclusionGuards::ALL), "{}", case.name);
    }
}

#[test]
fn without_a_guard_a_broken_list_of_exclusions_is_taken() {
    let cases = hostile(true);
    let stopped: [(&str, &'static [ExclusionGuard]); 5] = [
        ("exclusion-half-broken", &[ExclusionGuard::Shape]),
        ("exclusion-with-a-slip", &[ExclusionGuard::RuleMembers]),
        ("exclusion-in-a-list-of-namespaces", &[ExclusionGuard::RuleTexts]),
        ("exclusion-with-an-open-class", &[ExclusionGuard::RuleCharacters]),
        ("many-exclusions", &[ExclusionGuard::RuleCount]),
    ];
    for (name, off) in stopped {
        let case = cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("there is no case {name}"));
        assert!(!is_broken(case, ExclusionGuards::without(off)), "without {off:?} {name} is stopped all the same");
    }
}

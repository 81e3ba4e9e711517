//! The annotations of `change/tests-data` as the whole decision sees them, and those on the HyperConverged.

use crate::decide::{Observed, decide};
use crate::decision::{Effect, Verdict};
use crate::exclusion::Exclusions;
use crate::guards::{Guard, Guards};
use crate::scope::Consent;
use change::{Desired, Digest, Impact, Key, Live, ManagedFields, PatchableKinds};
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

/// What is decided about an object of ours with these annotations, of which nothing is remembered.
pub(crate) fn decided(wanted: &Value, annotations: BTreeMap<String, String>) -> (Verdict, bool) {
    let (key, desired, consent) = (Key::of(wanted).unwrap(), Desired::of(wanted), Consent::default());
    let mut annotations = annotations;
    annotations.insert(api::annotation::ORIGIN.to_owned(), "created".to_owned());
    let ours = json!([{"manager": api::FIELD_MANAGER, "operation": "Apply", "time": "t",
        "fieldsV1": {"f:metadata": {"f:annotations": {format!("f:{}", api::annotation::ORIGIN): {}}}}}]);
    let (uid, managed_fields) = ("u".into(), ManagedFields::new(&ours.to_string()));
    let live =
        Live { uid, resource_version: "1".into(), annotations, managed_fields, labelled: true, ..Live::default() };
    let observed = Observed {
        key: &key,
        wanted: &desired,
        impact: Impact::Low,
        live: Some(&live),
        remembered: None,
        budget: None,
        refused: &[],
        deletions: None,
        dropped: &[],
        frozen: false,
        consent: &consent,
        openings: &PatchableKinds::none(),
        excluded: false,
        restarts: "",
        source: "",
        inspected: None,
    };
    let decision = decide(&observed, 1_800_000_000_000);
    (decision.verdict, decision.refused.is_some())
}

/// What is applied, without what we add to every object.
pub(crate) fn applied(verdict: Verdict) -> Option<Value> {
    let Verdict::Do(Effect::Apply { mut object, digest, .. }) = verdict else { return None };
    let metadata = object["metadata"].as_object_mut().unwrap();
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
fn an_object_with_a_hostile_annotation_is_kept_as_if_it_were_not_there() {
    let objects = objects();
    for case in hostile(false) {
        let bare = &objects[&case.on];
        let (verdict, refused) = decided(bare, case.annotations());
        assert_eq!(refused, case.outcome == "refused", "{}", case.name);
        match case.outcome.as_str() {
            "held" => assert!(matches!(verdict, Verdict::Hold(_)), "{}", case.name),
            "refused" => assert_eq!(applied(verdict).as_ref(), Some(bare), "{}", case.name),
            _ => assert_eq!(Key::of(&applied(verdict).unwrap()), Key::of(bare), "{}", case.name),
        }
    }
}

fn is_broken(case: &Hostile, guards: Guards) -> bool {
    matches!(Exclusions::read_with(Some(&case.text()), guards), Exclusions::Broken(_))
}

#[test]
fn every_broken_list_of_exclusions_is_seen() {
    let cases = hostile(true);
    assert!(cases.len() >= 20, "{}", cases.len());
    for case in &cases {
        assert!(is_broken(case, Guards::ALL), "{}", case.name);
    }
}

#[test]
fn without_a_guard_a_broken_list_of_exclusions_is_taken() {
    let cases = hostile(true);
    let stopped: [(&str, &'static [Guard]); 5] = [
        ("exclusion-half-broken", &[Guard::Shape]),
        ("exclusion-with-a-slip", &[Guard::RuleMembers]),
        ("exclusion-in-a-list-of-namespaces", &[Guard::RuleTexts]),
        ("exclusion-with-a-class-of-letters", &[Guard::RuleLetters]),
        ("many-exclusions", &[Guard::RuleCount]),
    ];
    for (name, off) in stopped {
        let case = cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("there is no case {name}"));
        assert!(!is_broken(case, Guards::without(off)), "without {off:?} {name} is stopped all the same");
    }
}

//! Whether an asset applies to a cluster.

mod describe;

use crate::cluster::facts::Facts;
use crate::cluster::need::Need;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::{Asset, Install};
use crate::pack::condition::Condition;
use serde_json::Value;
use std::fmt;

pub use describe::{Check, CheckOutcome, CheckSubject, checks};

/// Whether an asset applies.
#[derive(Debug, Clone, PartialEq)]
pub enum Applicability {
    /// It applies.
    Applies,
    /// It does not apply, and why.
    Not(Unmet),
    /// It does not apply, because the user has not requested it or no longer requests it.
    NotAskedFor(Unmet),
    /// It would apply if the cluster served this.
    Missing(Need),
    /// These queries must be answered first.
    Needs(Vec<Query>),
    /// The cluster could not answer this query, so nothing may change.
    Held(Query),
    /// The conditions of the asset are invalid.
    Broken(String),
}

/// Why an asset does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// It is opt-in and has no conditions.
    NeverAskedFor,
    /// A condition is not met.
    Condition {
        /// What was checked, such as ``annotation `a/b` of the HyperConverged object``.
        what: String,
        /// The expected value.
        expected: String,
        /// The actual value.
        actual: String,
    },
    /// The cluster is different from what a condition wants: a sentence.
    Fact(String),
    /// None of several conditions is met, one of which would be enough.
    NoneOf(Vec<Unmet>),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::NeverAskedFor => write!(f, "it is opt-in and has no condition to opt in with"),
            Unmet::Fact(sentence) => f.write_str(sentence),
            Unmet::NoneOf(all) => {
                let texts: Vec<String> = all.iter().map(Unmet::to_string).collect();
                f.write_str(&texts.join(", or "))
            }
            Unmet::Condition { what, expected, actual } => write!(f, "{what} should be {expected} and is {actual}"),
        }
    }
}

/// Decides whether an asset applies to the cluster that the facts describe.
///
/// One unmet condition decides, even while others are still unknown. Kinds that the cluster does not serve are checked last, so that only
/// assets that otherwise apply report a missing kind.
pub fn applies(asset: &Asset, facts: &Facts) -> Applicability {
    decided(asset, facts).0
}

/// The same, with the place of what decides among the [`checks`].
pub fn decided(asset: &Asset, facts: &Facts) -> (Applicability, Option<usize>) {
    match conditions_met(asset, facts) {
        (Applicability::Applies, _) => {
            let missing = Need::all_of(asset).enumerate().find(|(_, need)| is_missing(need, facts));
            match missing {
                Some((place, need)) => (Applicability::Missing(need), Some(conditions(asset) + place)),
                None => (Applicability::Applies, None),
            }
        }
        other => other,
    }
}

/// The number of checks before those of what the cluster serves.
fn conditions(asset: &Asset) -> usize {
    asset.conditions.len().max(1)
}

fn is_missing(need: &Need, facts: &Facts) -> bool {
    // Hosted control planes never serve these; the template says what to do instead.
    let is_elsewhere = facts.topology.is_hcp && need.labels().group == "machineconfiguration.openshift.io";
    facts.absent.contains(need) && !is_elsewhere
}

fn conditions_met(asset: &Asset, facts: &Facts) -> (Applicability, Option<usize>) {
    if asset.conditions.is_empty() {
        return match asset.install {
            Install::Always => (Applicability::Applies, None),
            Install::OptIn => (Applicability::Not(Unmet::NeverAskedFor), Some(0)),
        };
    }
    let mut needs = Vec::new();
    let mut held = None;
    let (mut unmet, mut unasked) = (None, None);
    for (place, condition) in asset.conditions.iter().enumerate() {
        match met(condition, facts) {
            Met::Yes => {}
            Met::No if is_user_condition(condition) => unasked = unasked.or(Some(place)),
            Met::No => unmet = unmet.or(Some(place)),
            Met::Needs(query) => needs.push((query, place)),
            Met::Held(query) => held = held.or(Some((query, place))),
            Met::Broken(reason) => return (Applicability::Broken(reason), Some(place)),
        }
    }
    let why = |place: usize| describe::unmet(&asset.conditions[place], facts);
    if let Some(place) = unasked {
        return (Applicability::NotAskedFor(why(place)), Some(place));
    }
    if let Some(place) = unmet {
        return (Applicability::Not(why(place)), Some(place));
    }
    if let Some((query, place)) = held {
        return (Applicability::Held(query), Some(place));
    }
    let Some(place) = needs.first().map(|(_, place)| *place) else { return (Applicability::Applies, None) };
    let mut queries: Vec<Query> = needs.into_iter().map(|(query, _)| query).collect();
    queries.sort();
    queries.dedup();
    (Applicability::Needs(queries), Some(place))
}

/// Whether only a user can change the outcome of a condition; feature gates also change with the version of their operator.
fn is_user_condition(condition: &Condition) -> bool {
    condition.leaves().iter().all(|leaf| matches!(leaf, Condition::Annotation { .. }))
}

/// Shortens a value for a message.
fn short(value: &str) -> String {
    value.chars().take(64).collect()
}

fn annotation<'a>(facts: &'a Facts, key: &str) -> Option<&'a str> {
    facts.hco.pointer("/metadata/annotations").and_then(|map| map.get(key)).and_then(Value::as_str)
}

/// The outcome of one condition.
enum Met {
    Yes,
    No,
    Needs(Query),
    Held(Query),
    Broken(String),
}

fn met(condition: &Condition, facts: &Facts) -> Met {
    let holds = match condition {
        Condition::Annotation { key, value } => {
            let found = annotation(facts, key);
            match (value.as_deref(), found.map(str::trim)) {
                // Whatever is neither true nor false holds the object: a typo is no opt-out.
                (Some("true"), Some(text)) => match text.to_ascii_lowercase().as_str() {
                    "true" => true,
                    "false" | "" => false,
                    _ => return Met::Broken(format!("annotation `{key}` is `{}`; write true or false", short(text))),
                },
                (Some(value), _) => found == Some(value),
                (None, _) => found.is_some(),
            }
        }
        Condition::FeatureGate { value } => hco_gate(&facts.hco, value) == Gate::On,
        Condition::HardwareDetection { detector } => match facts.hardware.detected(detector) {
            None => return Met::Broken(format!("there is no hardware detector `{detector}`")),
            Some(holds) => holds,
        },
        Condition::Image { key } => facts.images.get(key).is_some_and(|image| !image.is_empty()),
        Condition::HcoFieldUnconfigured { path } => {
            let mut found = Some(&facts.hco);
            for step in path.split('.').filter(|step| !step.is_empty()) {
                found = found.and_then(|value| value.get(step));
            }
            match found {
                None | Some(Value::Null) => true,
                Some(Value::Object(map)) => map.is_empty(),
                Some(_) => false,
            }
        }
        Condition::Topology { field, value } => match facts.topology.boolean(field) {
            None => return Met::Broken(format!("the topology has no boolean `{field}`")),
            Some(found) => found == *value,
        },
        Condition::KubevirtFeatureGate { value } => return kubevirt_gate(value, facts),
        Condition::Any { of } => return any_met(of, facts),
    };
    if holds { Met::Yes } else { Met::No }
}

/// One condition that is met decides; else one that is unclear does.
fn any_met(conditions: &[Condition], facts: &Facts) -> Met {
    let mut unclear = None;
    for condition in conditions {
        match met(condition, facts) {
            Met::Yes => return Met::Yes,
            Met::No => {}
            other => unclear = unclear.or(Some(other)),
        }
    }
    unclear.unwrap_or(Met::No)
}

#[derive(PartialEq)]
enum Gate {
    On,
    Off,
    Missing,
}

/// The feature gates of HyperConverged v1 are a list of names and states, those of v1beta1 a map of booleans.
fn hco_gate(hco: &Value, name: &str) -> Gate {
    match hco.pointer("/spec/featureGates") {
        Some(Value::Array(gates)) => {
            match gates.iter().find(|gate| gate.get("name").and_then(Value::as_str) == Some(name)) {
                None => Gate::Missing,
                Some(gate) if gate.get("state").and_then(Value::as_str) == Some("Disabled") => Gate::Off,
                Some(_) => Gate::On,
            }
        }
        Some(Value::Object(gates)) => match gates.get(name).and_then(Value::as_bool) {
            None => Gate::Missing,
            Some(true) => Gate::On,
            Some(false) => Gate::Off,
        },
        _ => Gate::Missing,
    }
}

/// The query for the objects that have KubeVirt's feature gates.
fn kubevirt() -> Query {
    Query::List { api_version: "kubevirt.io/v1".into(), kind: "KubeVirt".into() }
}

fn kubevirt_gate(name: &str, facts: &Facts) -> Met {
    let query = kubevirt();
    match facts.answers.get(&query) {
        None => Met::Needs(query),
        Some(Answer::Unknown) => Met::Held(query),
        Some(Answer::Absent) => Met::No,
        Some(Answer::Found(list)) => {
            let gates = "/spec/configuration/developerConfiguration/featureGates";
            let holds = list.as_array().into_iter().flatten().any(|object| {
                let gates = object.pointer(gates).and_then(Value::as_array);
                gates.into_iter().flatten().any(|gate| gate.as_str() == Some(name))
            });
            if holds { Met::Yes } else { Met::No }
        }
    }
}

#[cfg(test)]
mod tests;

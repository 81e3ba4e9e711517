//! Whether an asset applies to a cluster.

use crate::cluster::facts::Facts;
use crate::cluster::need::Need;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::{Asset, Install};
use crate::pack::condition::Condition;
use serde_json::Value;
use std::fmt;

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
    /// None of several conditions is met, one of which would be enough.
    NoneOf(Vec<Unmet>),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::NeverAskedFor => write!(f, "it is opt-in and has no condition to opt in with"),
            Unmet::NoneOf(all) => {
                let texts: Vec<String> = all.iter().map(Unmet::to_string).collect();
                f.write_str(&texts.join(", or "))
            }
            Unmet::Condition { what, expected, actual } => write!(f, "{what} should be {expected} and is {actual}"),
        }
    }
}

/// The outcome of one condition.
enum Met {
    Yes,
    No(Unmet),
    Needs(Query),
    Held(Query),
    Broken(String),
}

/// Decides whether an asset applies to the cluster that the facts describe.
///
/// One unmet condition decides, even while others are still unknown. Kinds that the cluster does not serve are checked last, so that only
/// assets that otherwise apply report a missing kind.
pub fn applies(asset: &Asset, facts: &Facts) -> Applicability {
    match conditions_met(asset, facts) {
        Applicability::Applies => {
            // Hosted control planes never serve these; the template says what to do instead.
            let is_elsewhere =
                |need: &Need| facts.topology.is_hcp && need.labels().group == "machineconfiguration.openshift.io";
            let is_missing = |need: &Need| facts.absent.contains(need) && !is_elsewhere(need);
            Need::all_of(asset).find(is_missing).map_or(Applicability::Applies, Applicability::Missing)
        }
        other => other,
    }
}

fn conditions_met(asset: &Asset, facts: &Facts) -> Applicability {
    if asset.conditions.is_empty() {
        return match asset.install {
            Install::Always => Applicability::Applies,
            Install::OptIn => Applicability::Not(Unmet::NeverAskedFor),
        };
    }
    let mut needs = Vec::new();
    let mut held = None;
    let (mut unmet, mut unasked) = (None, None);
    for condition in &asset.conditions {
        match met(condition, facts) {
            Met::Yes => {}
            Met::No(reason) if is_user_condition(condition) => unasked = unasked.or(Some(reason)),
            Met::No(reason) => unmet = unmet.or(Some(reason)),
            Met::Needs(query) => needs.push(query),
            Met::Held(query) => held = held.or(Some(query)),
            Met::Broken(reason) => return Applicability::Broken(reason),
        }
    }
    if let Some(reason) = unasked {
        return Applicability::NotAskedFor(reason);
    }
    if let Some(reason) = unmet {
        return Applicability::Not(reason);
    }
    if let Some(query) = held {
        return Applicability::Held(query);
    }
    needs.sort();
    needs.dedup();
    if needs.is_empty() { Applicability::Applies } else { Applicability::Needs(needs) }
}

/// Whether only a user can change the outcome of a condition; feature gates also change with the version of their operator.
fn is_user_condition(condition: &Condition) -> bool {
    condition.leaves().iter().all(|leaf| matches!(leaf, Condition::Annotation { .. }))
}

/// Shortens a value for a message.
fn short(value: &str) -> String {
    value.chars().take(64).collect()
}

fn met(condition: &Condition, facts: &Facts) -> Met {
    match condition {
        Condition::Annotation { key, value } => {
            let found = facts.hco.pointer("/metadata/annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
            let holds = match (value.as_deref(), found.map(str::trim)) {
                // Whatever is neither true nor false holds the object: a typo is no opt-out.
                (Some("true"), Some(text)) => match text.to_ascii_lowercase().as_str() {
                    "true" => true,
                    "false" | "" => false,
                    _ => return Met::Broken(format!("annotation `{key}` is `{}`; write true or false", short(text))),
                },
                (Some(value), _) => found == Some(value),
                (None, _) => found.is_some(),
            };
            yes_or(holds, || {
                let expected = value.as_ref().map_or("set".to_owned(), |value| format!("`{value}`"));
                let actual = found.map_or("not set".to_owned(), |found| format!("`{found}`"));
                (format!("annotation `{key}` of the HyperConverged object"), expected, actual)
            })
        }
        Condition::FeatureGate { value } => {
            let state = hco_gate(&facts.hco, value);
            yes_or(state == Gate::On, || {
                let actual = if state == Gate::Off { "disabled" } else { "not set" };
                (format!("feature gate `{value}` of the HyperConverged object"), "enabled".into(), actual.into())
            })
        }
        Condition::HardwareDetection { detector } => match facts.hardware.detected(detector) {
            None => Met::Broken(format!("there is no hardware detector `{detector}`")),
            Some(holds) => yes_or(holds, || {
                (format!("hardware detector `{detector}`"), "true on some node".into(), "false on every node".into())
            }),
        },
        Condition::Image { key } => {
            let holds = facts.images.get(key).is_some_and(|image| !image.is_empty());
            yes_or(holds, || (format!("image `{key}`"), "known to the operator".into(), "not".into()))
        }
        Condition::HcoFieldUnconfigured { path } => {
            let mut found = Some(&facts.hco);
            for step in path.split('.').filter(|step| !step.is_empty()) {
                found = found.and_then(|value| value.get(step));
            }
            let holds = match found {
                None | Some(Value::Null) => true,
                Some(Value::Object(map)) => map.is_empty(),
                Some(_) => false,
            };
            yes_or(holds, || (format!("field `{path}` of the HyperConverged object"), "unset".into(), "set".into()))
        }
        Condition::Topology { field, value } => match facts.topology.boolean(field) {
            None => Met::Broken(format!("the topology has no boolean `{field}`")),
            Some(found) => {
                yes_or(found == *value, || (format!("`{field}` of the topology"), value.to_string(), found.to_string()))
            }
        },
        Condition::KubevirtFeatureGate { value } => kubevirt_gate(value, facts),
        Condition::Any { of } => any_met(of, facts),
    }
}

/// One condition that is met decides; else one that is unclear does.
fn any_met(conditions: &[Condition], facts: &Facts) -> Met {
    let (mut unmet, mut unclear) = (Vec::new(), None);
    for condition in conditions {
        match met(condition, facts) {
            Met::Yes => return Met::Yes,
            Met::No(why) => unmet.push(why),
            other => unclear = unclear.or(Some(other)),
        }
    }
    unclear.unwrap_or(Met::No(Unmet::NoneOf(unmet)))
}

fn yes_or(holds: bool, otherwise: impl FnOnce() -> (String, String, String)) -> Met {
    if holds {
        return Met::Yes;
    }
    let (what, expected, actual) = otherwise();
    Met::No(Unmet::Condition { what, expected, actual })
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

fn kubevirt_gate(name: &str, facts: &Facts) -> Met {
    let query = Query::List { api_version: "kubevirt.io/v1".into(), kind: "KubeVirt".into() };
    let what = || format!("feature gate `{name}` of the KubeVirt object");
    match facts.answers.get(&query) {
        None => Met::Needs(query),
        Some(Answer::Unknown) => Met::Held(query),
        Some(Answer::Absent) => yes_or(false, || (what(), "set".into(), "not set: there is no such object".into())),
        Some(Answer::Found(list)) => {
            let gates = "/spec/configuration/developerConfiguration/featureGates";
            let holds = list.as_array().into_iter().flatten().any(|object| {
                let gates = object.pointer(gates).and_then(Value::as_array);
                gates.into_iter().flatten().any(|gate| gate.as_str() == Some(name))
            });
            yes_or(holds, || (what(), "set".into(), "not set".into()))
        }
    }
}

#[cfg(test)]
mod tests;

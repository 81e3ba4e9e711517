//! Whether an asset is wanted in a cluster.

use crate::cluster::facts::Facts;
use crate::cluster::need::Need;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::{Asset, Install};
use crate::pack::condition::Condition;
use serde_json::Value;
use std::fmt;

/// Whether an asset is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Applicability {
    /// It is.
    Applies,
    /// It is not, and why.
    Not(Unmet),
    /// It is not, because its user did not ask for it or does not ask any more.
    NotAskedFor(Unmet),
    /// It would be, if the cluster served this.
    Missing(Need),
    /// That cannot be said before these are answered.
    Needs(Vec<Query>),
    /// The cluster did not answer this: leave everything as it is.
    Held(Query),
    /// The asset's own conditions make no sense.
    Broken(String),
}

/// The first thing that speaks against an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// It is opt-in and no condition opts in.
    NeverAskedFor,
    /// A condition does not hold.
    Condition {
        /// What was looked at, such as ``annotation `a/b` of the HyperConverged object``.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        actual: String,
    },
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::NeverAskedFor => write!(f, "it is opt-in and has no condition by which one could opt in"),
            Unmet::Condition { what, expected, actual } => write!(f, "{what} should be {expected} and is {actual}"),
        }
    }
}

/// The answer for one condition.
enum Met {
    Yes,
    No(Unmet),
    Needs(Query),
    Held(Query),
    Broken(String),
}

/// Decides whether an asset is wanted in the cluster that the facts describe.
///
/// One condition that does not hold is decisive, whatever is still unknown of the others. What the cluster does not serve is looked at
/// last, so that what nobody asked for is never missing anything.
pub fn applies(asset: &Asset, facts: &Facts) -> Applicability {
    match wanted(asset, facts) {
        Applicability::Applies => match Need::all_of(asset).find(|need| facts.absent.contains(need)) {
            Some(need) => Applicability::Missing(need),
            None => Applicability::Applies,
        },
        other => other,
    }
}

fn wanted(asset: &Asset, facts: &Facts) -> Applicability {
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
            Met::Broken(reason) => return Applicability::Broken(format!("asset {}: {reason}", asset.name)),
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

/// Whether only a user can have made a condition false; feature gates come and go with versions of their operator, too.
fn is_user_condition(condition: &Condition) -> bool {
    matches!(condition, Condition::Annotation { .. })
}

fn met(condition: &Condition, facts: &Facts) -> Met {
    match condition {
        Condition::Annotation { key, value } => {
            let found = facts.hco.pointer("/metadata/annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
            let holds = match value {
                Some(value) => found == Some(value),
                None => found.is_some(),
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
            yes_or(holds, || {
                (format!("field `{path}` of the HyperConverged object"), "left to us".into(), "set".into())
            })
        }
        Condition::Topology { field, value } => match facts.topology.boolean(field) {
            None => Met::Broken(format!("the topology has no boolean `{field}`")),
            Some(found) => {
                yes_or(found == *value, || (format!("`{field}` of the topology"), value.to_string(), found.to_string()))
            }
        },
        Condition::KubevirtFeatureGate { value } => kubevirt_gate(value, facts),
    }
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

/// Version v1 has a list of names and states, v1beta1 a map of booleans.
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
        Some(Answer::Absent) => yes_or(false, || (what(), "set".into(), "not, for there is no such object".into())),
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

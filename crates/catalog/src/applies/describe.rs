//! Everything that decides whether an asset applies, in words: what was checked, what it should be, and what it is.

use super::{Gate, Met, Unmet, annotation, hco_gate, is_missing, is_user_condition, kubevirt, met, short};
use crate::cluster::facts::Facts;
use crate::cluster::hardware::device;
use crate::cluster::need::Need;
use crate::cluster::query::Answer;
use crate::cluster::topology::sentence;
use crate::pack::asset::{Asset, Install};
use crate::pack::condition::Condition;
use api::annotation::PREFIX;

/// One thing that decides whether an asset applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it is about.
    pub subject: CheckSubject,
    /// What was checked, and what it should be.
    pub what: String,
    /// What it is.
    pub actual: String,
    /// The outcome.
    pub outcome: CheckOutcome,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckSubject {
    /// Whether the asset applies by default.
    Install,
    /// A switch of the user.
    Switch,
    /// A fact about the cluster.
    Fact,
    /// What the cluster serves.
    Served,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It is as it should be.
    Met,
    /// It is not.
    NotMet,
    /// The cluster has not answered yet, or cannot answer now.
    NotKnown,
    /// It cannot be checked, because something is written wrongly.
    Invalid,
}

/// Every check of an asset: its conditions, then what the cluster must serve. [`decided`](super::decided) says which of them decides.
pub fn checks(asset: &Asset, facts: &Facts) -> Vec<Check> {
    let mut all: Vec<Check> = asset.conditions.iter().map(|condition| check(condition, facts)).collect();
    if all.is_empty() {
        let (actual, outcome) = match asset.install {
            Install::Always => ("on by default".to_owned(), CheckOutcome::Met),
            Install::OptIn => (Unmet::NeverAskedFor.to_string(), CheckOutcome::NotMet),
        };
        all.push(Check { subject: CheckSubject::Install, what: "install mode".to_owned(), actual, outcome });
    }
    for need in Need::all_of(asset) {
        let (actual, outcome) = match is_missing(&need, facts) {
            true => (need.why(), CheckOutcome::NotMet),
            false => ("served".to_owned(), CheckOutcome::Met),
        };
        all.push(Check { subject: CheckSubject::Served, what: need.to_string(), actual, outcome });
    }
    all
}

fn check(condition: &Condition, facts: &Facts) -> Check {
    let (actual, outcome) = match met(condition, facts) {
        Met::Yes => (actual(condition, facts), CheckOutcome::Met),
        Met::No => (actual(condition, facts), CheckOutcome::NotMet),
        Met::Needs(query) => (format!("{query} is not read yet"), CheckOutcome::NotKnown),
        Met::Held(query) => (format!("{query} cannot be read now"), CheckOutcome::NotKnown),
        Met::Broken(why) => (why, CheckOutcome::Invalid),
    };
    let subject = if is_user_condition(condition) { CheckSubject::Switch } else { CheckSubject::Fact };
    let what = condition.to_string().replace("the HyperConverged has the annotation ", "").replace(PREFIX, "");
    Check { subject, what, actual, outcome }
}

/// Why a condition is not met.
pub(super) fn unmet(condition: &Condition, facts: &Facts) -> Unmet {
    if let Condition::Any { of } = condition {
        return Unmet::NoneOf(of.iter().map(|condition| unmet(condition, facts)).collect());
    }
    if matches!(condition, Condition::HardwareDetection { .. } | Condition::Topology { .. }) {
        return Unmet::Fact(actual(condition, facts));
    }
    let (what, expected) = expected(condition);
    Unmet::Condition { what, expected, actual: actual(condition, facts) }
}

/// What is checked, and what it should be.
fn expected(condition: &Condition) -> (String, String) {
    match condition {
        Condition::Annotation { key, value } => {
            let expected = value.as_ref().map_or("set".to_owned(), |value| format!("`{value}`"));
            (format!("annotation `{key}` of the HyperConverged object"), expected)
        }
        Condition::FeatureGate { value } => {
            (format!("feature gate `{value}` of the HyperConverged object"), "enabled".into())
        }
        Condition::Image { key } => (format!("image `{key}`"), "known to the operator".into()),
        Condition::HcoFieldUnconfigured { path } => {
            (format!("field `{path}` of the HyperConverged object"), "unset".into())
        }
        Condition::KubevirtFeatureGate { value } => {
            (format!("feature gate `{value}` of the KubeVirt object"), "set".into())
        }
        Condition::HardwareDetection { .. } | Condition::Topology { .. } | Condition::Any { .. } => {
            (condition.to_string(), "met".into())
        }
    }
}

/// What it is.
fn actual(condition: &Condition, facts: &Facts) -> String {
    let is_met = || matches!(met(condition, facts), Met::Yes);
    match condition {
        Condition::Annotation { key, .. } => {
            annotation(facts, key).map_or("not set".to_owned(), |found| format!("`{}`", short(found)))
        }
        Condition::FeatureGate { value } => match hco_gate(&facts.hco, value) {
            Gate::On => "enabled".into(),
            Gate::Off => "disabled".into(),
            Gate::Missing => "not set".into(),
        },
        Condition::HardwareDetection { .. } if is_met() => condition.to_string(),
        Condition::HardwareDetection { detector } => format!("no node has {}", device(detector)),
        Condition::Image { .. } if is_met() => "known to the operator".into(),
        Condition::Image { .. } => "not".into(),
        Condition::HcoFieldUnconfigured { .. } if is_met() => "unset".into(),
        Condition::HcoFieldUnconfigured { .. } => "set".into(),
        Condition::Topology { field, .. } => {
            facts.topology.boolean(field).map_or("not known".to_owned(), |found| sentence(field, found))
        }
        Condition::KubevirtFeatureGate { .. } => match facts.answers.get(&kubevirt()) {
            Some(Answer::Absent) => "not set: there is no such object".into(),
            _ if is_met() => "set".into(),
            _ => "not set".into(),
        },
        Condition::Any { of } => {
            let decisive = of.iter().find(|leaf| matches!(met(leaf, facts), Met::Yes));
            match decisive {
                Some(leaf) => check(leaf, facts).what,
                None => "none of them".into(),
            }
        }
    }
}

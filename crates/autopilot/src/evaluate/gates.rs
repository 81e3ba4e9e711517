//! Every gate between an asset and its object, in the order in which they are evaluated, and which of them decides.

use super::{AssetResult, Evaluation, Exclusion, Outcome, Unclear};
use crate::exclusion::Exclusions;
use crate::scope::Scope;
use catalog::{Applicability, Asset, Catalog, CheckOutcome, CheckSubject, Facts, Need};
use serde::Serialize;

/// What a gate is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GateKind {
    /// Whether the annotations of the HyperConverged can be read.
    Settings,
    /// The annotation `autopilot`.
    Scope,
    /// Whether the advisor governs it.
    Governed,
    /// Whether the asset is on by default.
    Install,
    /// A switch of the user.
    Switch,
    /// A fact about the cluster.
    Fact,
    /// What the cluster serves.
    Served,
    /// What the template renders.
    Template,
    /// The annotation `disabled-resources`.
    Exclusion,
    /// Whether the object can be read, and is not being deleted.
    Object,
    /// The annotation `mode`.
    Mode,
    /// The annotation `reconcile-paused`.
    Pause,
    /// The annotation `patch`.
    Patch,
    /// The annotation `ignore-fields`.
    IgnoreFields,
    /// Other managers that apply the same fields.
    Owners,
    /// Whether an object of somebody else can be backed up before it is adopted.
    Adoption,
    /// Whether a person has to approve.
    Approval,
    /// Whether the pools of nodes are healthy.
    Pool,
    /// Whether a maintenance window is open.
    Window,
    /// The budget of corrections.
    Budget,
    /// The answer of the API server.
    Server,
    /// Whether what is not wanted any more may be removed.
    Removal,
}

/// How a gate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GateOutcome {
    /// It lets the object through.
    Open,
    /// It does not.
    Closed,
    /// It cannot be told yet.
    Unknown,
    /// It does not matter, because another gate decides first.
    NotReached,
}

/// One gate, with the value that it looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateRow {
    /// What it is about.
    pub gate: GateKind,
    /// What is looked at.
    pub what: String,
    /// What it is.
    pub value: String,
    /// How it answers.
    pub outcome: GateOutcome,
    /// Whether it decides about the object.
    pub decides: bool,
}

impl GateRow {
    pub(crate) fn new(
        gate: GateKind,
        what: impl Into<String>,
        value: impl Into<String>,
        outcome: GateOutcome,
    ) -> GateRow {
        GateRow { gate, what: what.into(), value: value.into(), outcome, decides: false }
    }
}

impl GateKind {
    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            GateKind::Settings => "settings",
            GateKind::Scope => "autopilot",
            GateKind::Governed => "governed by",
            GateKind::Install => "install",
            GateKind::Switch => "switched on by",
            GateKind::Fact => "condition",
            GateKind::Served => "served",
            GateKind::Template => "template",
            GateKind::Exclusion => "exclusion",
            GateKind::Object => "object",
            GateKind::Mode => "mode",
            GateKind::Pause => "pause",
            GateKind::Patch => "patch",
            GateKind::IgnoreFields => "ignore-fields",
            GateKind::Owners => "other owners",
            GateKind::Adoption => "adoption",
            GateKind::Approval => "approval",
            GateKind::Pool => "pool",
            GateKind::Window => "window",
            GateKind::Budget => "budget",
            GateKind::Server => "api server",
            GateKind::Removal => "removal",
        }
    }
}

/// The gates up to the object of an asset. Each row is computed from what the gate looks at; the result of the evaluation says which one
/// decides.
pub fn gates(catalog: &Catalog, facts: &Facts, evaluation: &Evaluation, outcome: &Outcome) -> Vec<GateRow> {
    let Some(asset) = catalog.asset(&outcome.asset) else { return Vec::new() };
    let mut rows = vec![settings(evaluation), scope(evaluation, facts, asset)];
    if let AssetResult::Governed { by, .. } = &outcome.result {
        rows.push(GateRow::new(GateKind::Governed, "VirtPlatformConfig", by, GateOutcome::Closed));
    }
    let first = rows.len();
    let (applicability, place) = catalog::decided(asset, facts);
    rows.extend(catalog::checks(asset, facts).into_iter().map(|check| {
        let gate = match check.subject {
            CheckSubject::Install => GateKind::Install,
            CheckSubject::Switch => GateKind::Switch,
            CheckSubject::Fact => GateKind::Fact,
            CheckSubject::Served => GateKind::Served,
        };
        let outcome = match check.outcome {
            CheckOutcome::Met => GateOutcome::Open,
            CheckOutcome::NotMet | CheckOutcome::Invalid => GateOutcome::Closed,
            CheckOutcome::NotKnown => GateOutcome::Unknown,
        };
        GateRow::new(gate, check.what, check.actual, outcome)
    }));
    rows.push(template(outcome, applicability == Applicability::Applies));
    let rendered = rows.len() - 1;
    if let AssetResult::Missing { need, .. } = &outcome.result
        && !Need::all_of(asset).any(|known| known == *need)
    {
        rows.push(GateRow::new(GateKind::Served, need.to_string(), need.why(), GateOutcome::Closed));
    }
    rows.push(exclusion(evaluation, outcome));
    let last = rows.len() - 1;
    let checked = |otherwise: usize| place.map_or(otherwise, |place| first + place);
    let decides = match &outcome.result {
        AssetResult::Included(_) => None,
        AssetResult::Filtered(_) => Some(last),
        AssetResult::Governed { .. } => Some(first - 1),
        AssetResult::Excluded(Exclusion::Unclear(_)) => Some(0),
        AssetResult::Excluded(Exclusion::Off | Exclusion::NotNamed)
        | AssetResult::Unwanted { why: Exclusion::NotNamed, .. } => Some(1),
        AssetResult::Unwanted { .. } | AssetResult::Excluded(Exclusion::Unmet(_)) => Some(checked(rendered)),
        AssetResult::Excluded(Exclusion::RendersNothing | Exclusion::NotApplicable(_) | Exclusion::Missing(_)) => {
            Some(rendered)
        }
        AssetResult::Missing { .. } => Some(checked(rendered + 1)),
        AssetResult::Needs(_) | AssetResult::Error(_) => Some(checked(rendered)),
    };
    if let Some(row) = decides.and_then(|place| rows.get_mut(place)) {
        row.decides = true;
    }
    rows
}

fn settings(evaluation: &Evaluation) -> GateRow {
    let what = "autopilot and disabled-resources";
    match &evaluation.unclear {
        None => GateRow::new(GateKind::Settings, what, "can be read", GateOutcome::Open),
        Some(unclear) => GateRow::new(GateKind::Settings, what, unclear.brief(), GateOutcome::Closed),
    }
}

fn scope(evaluation: &Evaluation, facts: &Facts, asset: &Asset) -> GateRow {
    let what = "the annotation autopilot";
    let written = facts.hco["metadata"]["annotations"][api::annotation::AUTOPILOT].as_str().unwrap_or_default();
    let row = |value: String, outcome: GateOutcome| GateRow::new(GateKind::Scope, what, value, outcome);
    match &evaluation.rules.scope {
        Scope::Off if written.trim().is_empty() => {
            row("not set, and the operator runs with --opt-in".into(), GateOutcome::Closed)
        }
        Scope::Off => row("off".into(), GateOutcome::Closed),
        Scope::All { explicit: true } => row("true".into(), GateOutcome::Open),
        Scope::All { explicit: false } => row("not set, which means on".into(), GateOutcome::Open),
        scope @ Scope::Listed(_) => match asset.names().find(|name| scope.includes([*name].into_iter())) {
            Some(name) => row(format!("names {name}"), GateOutcome::Open),
            None => row("does not name it".into(), GateOutcome::Closed),
        },
        Scope::Held { .. } => row("cannot be used".into(), GateOutcome::Unknown),
    }
}

fn template(outcome: &Outcome, applies: bool) -> GateRow {
    let row =
        |value: String, answer: GateOutcome| GateRow::new(GateKind::Template, outcome.path.clone(), value, answer);
    let object = || outcome.key.as_ref().map_or("its object".to_owned(), ToString::to_string);
    match &outcome.result {
        AssetResult::Included(_) | AssetResult::Filtered(_) | AssetResult::Governed { object: Some(_), .. } => {
            row(format!("renders {}", object()), GateOutcome::Open)
        }
        AssetResult::Missing { .. } if applies => row(format!("renders {}", object()), GateOutcome::Open),
        AssetResult::Excluded(why @ (Exclusion::RendersNothing | Exclusion::NotApplicable(_))) => {
            row(why.to_string(), GateOutcome::Closed)
        }
        AssetResult::Error(why) if applies => row(why.clone(), GateOutcome::Closed),
        AssetResult::Needs(queries) if applies => {
            let queries: Vec<String> = queries.iter().map(ToString::to_string).collect();
            row(format!("waits for {}", queries.join(", ")), GateOutcome::Unknown)
        }
        _ => row("not rendered".into(), GateOutcome::NotReached),
    }
}

fn exclusion(evaluation: &Evaluation, outcome: &Outcome) -> GateRow {
    let row = |value: &str, answer: GateOutcome| GateRow::new(GateKind::Exclusion, "disabled-resources", value, answer);
    match (&evaluation.rules.exclusions, &outcome.key) {
        _ if matches!(evaluation.unclear, Some(Unclear::Exclusions { .. })) => {
            row("cannot be read", GateOutcome::Unknown)
        }
        (Exclusions::Rules(rules), _) if rules.is_empty() => row("not set", GateOutcome::Open),
        (_, None) => row("its object is not known", GateOutcome::NotReached),
        (_, Some(key)) => match evaluation.rules.rule_for(key) {
            Some(rule) => row(&format!("rule {rule}"), GateOutcome::Closed),
            None => row("no rule matches", GateOutcome::Open),
        },
    }
}

#[cfg(test)]
mod tests;

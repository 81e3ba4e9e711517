//! What a person does next about an asset or an object, as a command where there is one.

use api::annotation;
use autopilot::{Core, Explanation, GateKind, GateOutcome, GateRow, LineState, ObjectState};
use catalog::{Asset, Catalog, Condition};
use change::Key;

/// What a person does next.
#[derive(Debug, Default)]
pub(super) struct Next {
    /// The step; empty if nothing is to be done.
    pub(super) step: String,
    /// What else is in the way of the asset that the step switches on.
    pub(super) besides: Vec<String>,
}

pub(super) fn next(explanation: &Explanation, catalog: &Catalog, core: &Core) -> Next {
    Next { step: step(explanation, catalog, core), besides: besides(&explanation.gates) }
}

/// The other conditions that are not met, where a switch decides.
fn besides(gates: &[GateRow]) -> Vec<String> {
    let is_switch = gates.iter().any(|row| row.decides && row.gate == GateKind::Switch);
    let is_other = |row: &&GateRow| {
        let is_condition = matches!(row.gate, GateKind::Switch | GateKind::Fact | GateKind::Served);
        is_switch && is_condition && !row.decides && row.outcome == GateOutcome::Closed
    };
    let text = |row: &GateRow| match row.gate {
        GateKind::Switch => format!("{} is {}", row.what, row.value),
        _ => row.value.clone(),
    };
    gates.iter().filter(is_other).map(text).collect()
}

/// The next step; empty if nothing is to be done.
fn step(explanation: &Explanation, catalog: &Catalog, core: &Core) -> String {
    if let LineState::Object(ObjectState::Held(reason)) = &explanation.line.state
        && let Some(digest) = reason.asked()
    {
        return format!("virtpilot approve {digest}");
    }
    let hco = core.hyperconverged();
    let deciding = explanation.gates.iter().find(|row| row.decides);
    let found = match deciding.map(|row| row.gate) {
        Some(GateKind::Scope) => Some(annotate(hco, annotation::AUTOPILOT, "true")),
        Some(GateKind::Switch) => {
            let asset = catalog.asset(&explanation.line.asset);
            asset.and_then(|asset| switch(asset, core)).map(|key| annotate(hco, &key, "true"))
        }
        Some(GateKind::Governed) => deciding.map(|row| {
            let patch = r#"{"spec":{"action":"Ignore","handOver":true}}"#;
            format!("kubectl patch virtplatformconfig {} --type merge --patch '{patch}'", row.value)
        }),
        Some(GateKind::Exclusion) => {
            Some(format!("remove the rule from {}: kubectl edit {}", annotation::DISABLED_RESOURCES, object(hco)))
        }
        Some(GateKind::Mode) => explanation.line.key.as_ref().map(|key| remove(key, annotation::MODE)),
        Some(GateKind::Pause) => explanation.line.key.as_ref().map(|key| remove(key, annotation::RECONCILE_PAUSED)),
        Some(GateKind::Patch) => {
            explanation.line.key.as_ref().map(|key| format!("virtpilot explain patch {}", key.kind.kind))
        }
        Some(GateKind::Fact) => deciding.map(|row| format!("nothing here: it is applied by itself where {}", row.what)),
        Some(GateKind::Served) => {
            Some("install the operator that serves this kind; the asset is then applied by itself".to_owned())
        }
        Some(GateKind::Template) => waiting_of_same_feature(explanation, catalog, core),
        Some(GateKind::Settings) => Some(format!("kubectl get {} --output yaml | virtpilot lint -", object(hco))),
        _ => None,
    };
    let by_state = || {
        let word = explanation.word.to_string();
        let state = api::reference::STATES.iter().find(|state| state.word == word);
        // Whoever reads this has asked already.
        let next = state.map(|state| state.next).filter(|next| !next.contains("explain ASSET"));
        next.filter(|next| *next != "nothing").unwrap_or_default().to_owned()
    };
    found.unwrap_or_else(by_state)
}

/// The approval of another asset of the same feature, for which this one may wait.
fn waiting_of_same_feature(explanation: &Explanation, catalog: &Catalog, core: &Core) -> Option<String> {
    let features = |asset: &str| -> Vec<&str> {
        let asset = catalog.asset(asset);
        asset.into_iter().flat_map(|asset| catalog.features_of(asset)).map(|feature| feature.name.as_str()).collect()
    };
    let own = features(&explanation.line.asset);
    let lines = core.status();
    let waiting = lines.iter().find(|line| {
        let is_asked = matches!(&line.state, LineState::Object(ObjectState::Held(reason)) if reason.asked().is_some());
        is_asked && features(&line.asset).iter().any(|feature| own.contains(feature))
    });
    waiting.map(|line| format!("virtpilot approve {}", line.asset))
}

/// The first switch of an asset that is not on.
fn switch(asset: &Asset, core: &Core) -> Option<String> {
    let annotations = &core.facts().hco["metadata"]["annotations"];
    asset.conditions.iter().flat_map(Condition::leaves).find_map(|condition| match condition {
        Condition::Annotation { key, value: Some(value) } => {
            let is_on = annotations[key].as_str().is_some_and(|found| found.trim().eq_ignore_ascii_case(value));
            (!is_on).then(|| key.clone())
        }
        _ => None,
    })
}

/// An object as kubectl names it.
fn object(key: &Key) -> String {
    let kind = key.kind.kind.to_lowercase();
    let namespace = if key.namespace.is_empty() { String::new() } else { format!(" --namespace {}", key.namespace) };
    format!("{kind} {}{namespace}", key.name)
}

fn annotate(key: &Key, name: &str, value: &str) -> String {
    format!("kubectl annotate --overwrite {} {name}={value}", object(key))
}

fn remove(key: &Key, name: &str) -> String {
    format!("kubectl annotate {} {name}-", object(key))
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::row;
    use super::besides;
    use autopilot::{GateKind, GateOutcome};

    #[test]
    fn a_switch_that_is_not_enough_names_the_other_conditions() {
        let mut rows = vec![
            row(GateKind::Switch, "not set", GateOutcome::Closed, true),
            row(GateKind::Fact, "no node has a GPU", GateOutcome::Closed, false),
            row(GateKind::Served, "served", GateOutcome::Open, false),
        ];
        assert_eq!(besides(&rows), ["no node has a GPU"]);
        rows[0].decides = false;
        assert!(besides(&rows).is_empty(), "nothing is switched on");
    }
}

//! What a person does next about an asset or an object, as a command where there is one.

use api::annotation;
use autopilot::{Core, Explanation, GateKind, LineState, ObjectState};
use catalog::{Asset, Catalog, Condition};
use change::Key;

/// The next step; empty if nothing is to be done.
pub(super) fn step(explanation: &Explanation, catalog: &Catalog, core: &Core) -> String {
    if let LineState::Object(ObjectState::Held(reason)) = &explanation.line.state
        && let Some(digest) = reason.asked()
    {
        return format!("virtpilot approve {digest}");
    }
    let hco = core.hyperconverged();
    let deciding = explanation.gates.iter().find(|row| row.decides).map(|row| row.gate);
    let found = match deciding {
        Some(GateKind::Scope) => Some(annotate(hco, annotation::AUTOPILOT, "true")),
        Some(GateKind::Switch) => {
            let asset = catalog.asset(&explanation.line.asset);
            asset.and_then(|asset| switch(asset, core)).map(|key| annotate(hco, &key, "true"))
        }
        Some(GateKind::Exclusion) => {
            Some(format!("remove the rule from {}: kubectl edit {}", annotation::DISABLED_RESOURCES, object(hco)))
        }
        Some(GateKind::Mode) => explanation.line.key.as_ref().map(|key| remove(key, annotation::MODE)),
        Some(GateKind::Pause) => explanation.line.key.as_ref().map(|key| remove(key, annotation::RECONCILE_PAUSED)),
        Some(GateKind::Patch) => {
            explanation.line.key.as_ref().map(|key| format!("virtpilot explain patch {}", key.kind.kind))
        }
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

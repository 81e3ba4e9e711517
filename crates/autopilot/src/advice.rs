//! Settings that have no effect, probably because of a typing error: each is worth a warning, and holds nothing.

use crate::nearest::{nearest, question};
use api::annotation;
use catalog::Catalog;
use change::pointer::Pointer;
use change::{Consent, Digest, Key};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The annotations of the HyperConverged, beside those that a pack reads.
const ON_HCO: [&str; 8] = [
    annotation::AUTOPILOT,
    annotation::DISABLED_RESOURCES,
    annotation::APPROVAL,
    annotation::APPROVED,
    annotation::PATCH,
    annotation::IGNORE_FIELDS,
    annotation::MODE,
    annotation::RECONCILE_PAUSED,
];
/// Written on the HyperConverged by the predecessor.
const PREDECESSORS: [&str; 2] = ["platform.kubevirt.io/managed-by", "platform.kubevirt.io/version"];

/// What is wrong with the annotations of the HyperConverged. `excluded` are the kinds that `disabled-resources` names.
pub(crate) fn about_platform(hco: &Value, catalog: &Catalog, excluded: &[&str], kinds: &BTreeSet<&str>) -> Vec<String> {
    let mut advice = Vec::new();
    let annotations = hco["metadata"]["annotations"].as_object().into_iter().flatten();
    for (key, value) in annotations.filter(|(key, _)| key.starts_with(annotation::PREFIX)) {
        let value = value.as_str().unwrap_or_default().trim();
        match key.as_str() {
            annotation::APPROVAL if !["", "none", "high-impact"].contains(&value) => advice.push(format!(
                "approval is {value:?}, which counts as high-impact{}; write none or high-impact",
                question(&nearest(value, ["none", "high-impact"]))
            )),
            annotation::APPROVED => {
                let wrong = Consent::digests(value).filter(|entry| Digest::parse(entry).is_none());
                advice.extend(wrong.map(|entry| {
                    format!("approved lists {entry:?}, which is not a digest; copy it from \"virtpilot status\"")
                }));
            }
            key if is_known(key, &ON_HCO) || catalog.mentions(key) => {}
            key => advice.push(unknown(key, &ON_HCO)),
        }
    }
    for kind in excluded.iter().filter(|kind| !kinds.contains(*kind)) {
        let nearest = question(&nearest(kind, kinds.iter().copied()));
        advice.push(format!("disabled-resources names the kind {kind:?}{nearest}, of which no asset has an object"));
    }
    advice
}

/// What is wrong with the annotations of a managed object.
pub(crate) fn about_object(
    key: &Key,
    annotations: &BTreeMap<String, String>,
    wanted: impl FnOnce() -> Value,
) -> Vec<String> {
    let mut advice = Vec::new();
    let is_platform = key.kind.kind == api::hco::KIND;
    for name in annotations.keys().filter(|_| !is_platform) {
        if !is_known(name, &annotation::USERS) {
            advice.push(unknown(name, &annotation::USERS));
        }
    }
    let Some(ignored) = annotations.get(annotation::IGNORE_FIELDS) else { return advice };
    let wanted = wanted();
    for entry in ignored.split(',').map(str::trim) {
        let Some(pointer) = Pointer::parse(entry).ok().filter(|pointer| !pointer.steps().is_empty()) else { continue };
        if let Some(missing) = first_missing(&wanted, &pointer) {
            advice.push(format!("ignore-fields names {entry}, which has no effect{missing}"));
        }
    }
    advice
}

/// The nearest field where a pointer leads to none that we want; nothing if it leads to one.
fn first_missing(wanted: &Value, pointer: &Pointer) -> Option<String> {
    let mut place = wanted;
    for step in pointer.steps() {
        // What is ignored as a whole is refused elsewhere, and a list is no place for a key.
        let fields = place.as_object()?;
        match fields.get(step.as_str()) {
            Some(value) => place = value,
            None => {
                let nearest = question(&nearest(step, fields.keys().map(String::as_str)));
                return Some(format!(": the autopilot sets no field {step:?} there{nearest}"));
            }
        }
    }
    None
}

fn is_known(key: &str, valid: &[&str]) -> bool {
    valid.contains(&key) || annotation::OURS.contains(&key) || PREDECESSORS.contains(&key)
}

fn unknown(key: &str, valid: &[&str]) -> String {
    let short = |key: &str| key.trim_start_matches(annotation::PREFIX).to_owned();
    let names: Vec<String> = valid.iter().map(|key| short(key)).collect();
    let nearest = nearest(&short(key), names.iter().map(String::as_str));
    format!("the annotation {key} is not known{} and has no effect", question(&nearest))
}

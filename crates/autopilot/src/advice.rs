//! Settings that have no effect, probably because of a typing error: each is worth a warning, and holds nothing.

use crate::nearest::{nearest, question};
use api::annotation;
use catalog::Catalog;
use change::pointer::Pointer;
use change::{Consent, Digest, Key, Maintenance};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The annotations of the HyperConverged, beside those that a pack reads.
const ON_HCO: [&str; 10] = [
    annotation::AUTOPILOT,
    annotation::DISABLED_RESOURCES,
    annotation::APPROVAL,
    annotation::APPROVED,
    annotation::APPROVED_BY,
    annotation::MAINTENANCE_WINDOW,
    annotation::PATCH,
    annotation::IGNORE_FIELDS,
    annotation::MODE,
    annotation::RECONCILE_PAUSED,
];
/// Written on the HyperConverged by the predecessor.
const PREDECESSORS: [&str; 2] = ["platform.kubevirt.io/managed-by", "platform.kubevirt.io/version"];

/// More lines of advice help nobody, and annotations may be large.
const MOST: usize = 5;
/// A longer list of ignored fields is refused.
const MOST_IGNORED: usize = 64;

/// What is wrong with the annotations of the HyperConverged. `excluded` are the kinds that `disabled-resources` names.
pub(crate) fn about_platform(hco: &Value, catalog: &Catalog, excluded: &[&str], kinds: &BTreeSet<&str>) -> Vec<String> {
    let mut advice = Vec::new();
    let annotations = hco["metadata"]["annotations"].as_object().into_iter().flatten();
    for (key, value) in annotations.filter(|(key, _)| key.starts_with(annotation::PREFIX)) {
        let value = value.as_str().unwrap_or_default().trim();
        match key.as_str() {
            annotation::APPROVAL if !["", "none", "high-impact"].contains(&value) => advice.push(format!(
                "approval is {:?}, which counts as high-impact{}; write none or high-impact",
                shortened(value),
                question(&nearest(&shortened(value), ["none", "high-impact"]))
            )),
            annotation::APPROVED => {
                let wrong = Consent::digests(value).filter(|entry| Digest::parse(entry).is_none());
                advice.extend(wrong.take(MOST).map(shortened).map(|entry| {
                    format!("approved lists {entry:?}, which is not a digest; copy it from \"virtpilot status\"")
                }));
            }
            annotation::MAINTENANCE_WINDOW => {
                advice.extend(Maintenance::read(Some(value)).1.map(|why| {
                    format!("maintenance-window cannot be read, so nothing that restarts nodes goes ahead: {why}")
                }));
            }
            _ if advice.len() >= MOST => {}
            key if is_known(key, &ON_HCO) || catalog.annotations.contains(key) => {}
            key => {
                let valid = ON_HCO.into_iter().chain(catalog.annotations.iter().map(String::as_str));
                advice.push(unknown(key, valid));
            }
        }
    }
    for kind in excluded.iter().filter(|kind| !kinds.contains(*kind)).take(MOST) {
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
    let strange = annotations.keys().filter(|name| !is_platform && !is_known(name, &annotation::USERS));
    advice.extend(strange.take(MOST).map(|name| unknown(name, annotation::USERS)));
    let Some(ignored) = annotations.get(annotation::IGNORE_FIELDS) else { return advice };
    if ignored.split(',').count() > MOST_IGNORED {
        return advice;
    }
    let wanted = wanted();
    for entry in ignored.split(',').map(str::trim) {
        let Some(pointer) = Pointer::parse(entry).ok().filter(|pointer| !pointer.steps().is_empty()) else { continue };
        if let Some(missing) = first_missing(&wanted, &pointer).filter(|_| advice.len() < MOST) {
            advice.push(format!("ignore-fields names {}, which has no effect{missing}", shortened(entry)));
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
                let step = shortened(step);
                let nearest = question(&nearest(&step, fields.keys().map(String::as_str)));
                return Some(format!(": the autopilot sets no field {step:?} there{nearest}"));
            }
        }
    }
    None
}

/// As much of a text as fits into a message.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The name of an annotation without our prefix.
fn short(key: &str) -> &str {
    key.trim_start_matches(annotation::PREFIX)
}

fn is_known(key: &str, valid: &[&str]) -> bool {
    valid.contains(&key) || annotation::OURS.contains(&key) || PREDECESSORS.contains(&key)
}

fn unknown<'a>(key: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = nearest(short(key), valid.into_iter().map(short));
    format!("the annotation {key} is not known{} and has no effect", question(&nearest))
}

#[cfg(test)]
mod tests {
    use super::{MOST, about_object, about_platform};
    use crate::testing::pack::Pack;
    use change::{Key, Kind};
    use serde_json::{Value, json};
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn large_annotations_give_little_advice() {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let wanted = || json!({"data": {"level": "1"}});
        let advice = |annotations: &BTreeMap<String, String>| about_object(&key, annotations, wanted);
        let ignoring = |count: usize| {
            let fields: Vec<String> = (0..count).map(|number| format!("/data/x{number}")).collect();
            BTreeMap::from([(api::annotation::IGNORE_FIELDS.to_owned(), fields.join(","))])
        };
        assert_eq!(advice(&ignoring(64)).len(), MOST);
        assert!(advice(&ignoring(65)).is_empty(), "the list is refused");
        let long = advice(&BTreeMap::from([(
            api::annotation::IGNORE_FIELDS.to_owned(),
            format!("/data/{}", "x".repeat(100_000)),
        )]));
        assert!(long.len() == 1 && long[0].len() < 300, "{}", long[0].len());
        let many = (0..1_000).map(|number| (format!("platform.kubevirt.io/x{number}"), String::new())).collect();
        assert_eq!(advice(&many).len(), MOST);
        let on_hco = json!({"metadata": {"annotations": many}});
        let about = |hco: &Value| about_platform(hco, &Pack::default().catalog(), &[], &BTreeSet::new());
        assert_eq!(about(&on_hco).len(), MOST);
        assert!(about(&json!({"metadata": {"annotations": {"example.com/x": ""}}})).is_empty(), "not ours");
    }
}

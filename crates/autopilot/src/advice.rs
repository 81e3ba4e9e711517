//! Settings that have no effect, probably because of a typing error: each is worth a warning, and holds nothing.

use crate::exclusion::ExclusionRule;
use crate::nearest::{nearest, question};
use api::annotation;
use catalog::{Catalog, Condition};
use change::pointer::Pointer;
use change::{Consent, Digest, Key, Maintenance};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The annotations of the HyperConverged, beside those that a pack reads.
pub const ON_HCO: [&str; 10] = [
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
pub const PREDECESSORS: [&str; 2] = ["platform.kubevirt.io/managed-by", "platform.kubevirt.io/version"];

/// More lines of advice help nobody, and annotations may be large.
const MOST: usize = 5;
/// A longer list of ignored fields is refused.
const MOST_IGNORED: usize = 64;

/// What assets and tombstones are about, for the search of rules that fit none of them.
#[derive(Debug, Default)]
pub struct Targets {
    /// The objects that are known by name.
    pub keys: Vec<Key>,
    /// The kinds of objects whose names only a render tells.
    pub nameless: BTreeSet<String>,
}

impl Targets {
    /// All kinds.
    fn kinds(&self) -> BTreeSet<&str> {
        self.keys.iter().map(|key| key.kind.kind.as_str()).chain(self.nameless.iter().map(String::as_str)).collect()
    }

    /// Why a rule fits nothing; nothing if it fits, or may fit, an object.
    pub fn unmatched(&self, rule: &ExclusionRule) -> Option<String> {
        let is_kind = |kind: &str| kind.eq_ignore_ascii_case(&rule.kind);
        let kinds = self.kinds();
        if !kinds.iter().any(|kind| is_kind(kind)) {
            let nearest = question(&nearest(&rule.kind, kinds));
            return Some(format!(
                "disabled-resources names the kind {:?}{nearest}, of which no asset has an object",
                rule.kind
            ));
        }
        if self.nameless.iter().any(|kind| is_kind(kind)) || self.keys.iter().any(|key| rule.fits(key)) {
            return None;
        }
        let of_kind = self.keys.iter().filter(|key| is_kind(&key.kind.kind));
        let nearest = question(&nearest(rule.name.as_str(), of_kind.map(|key| key.name.as_str())));
        Some(format!("disabled-resources has the rule {rule}{nearest}, which matches no object of any asset"))
    }
}

/// What is wrong with the annotations of the HyperConverged.
pub(crate) fn about_platform(
    hco: &Value,
    catalog: &Catalog,
    excluded: &[ExclusionRule],
    targets: &Targets,
) -> Vec<String> {
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
                    format!(
                        "approved lists {entry:?}, which is not a whole digest; write sha256: and 64 digits, as \"virtpilot status \
                         -o wide\" shows it, or run \"virtpilot approve\", which also takes the first digits"
                    )
                }));
            }
            annotation::MAINTENANCE_WINDOW => {
                advice.extend(Maintenance::read(Some(value)).1.map(|why| {
                    format!("maintenance-window cannot be read, so nothing that restarts nodes goes ahead: {why}")
                }));
            }
            _ if advice.len() >= MOST => {}
            key if !is_boolean(value) && is_switch(key, catalog) => advice.push(format!(
                "the annotation {key} is {:?}, which is neither true nor false{}; write true or false",
                shortened(value),
                question(&nearest(&shortened(value), ["true", "false"]))
            )),
            key if is_known(key, &ON_HCO) || catalog.annotations.contains(key) => {}
            key => {
                let valid = ON_HCO.into_iter().chain(catalog.annotations.iter().map(String::as_str));
                advice.push(unknown(key, valid));
            }
        }
    }
    let unmatched: BTreeSet<String> = excluded.iter().filter_map(|rule| targets.unmatched(rule)).take(MOST).collect();
    advice.extend(unmatched);
    advice
}

/// Whether an annotation is a switch that only templates read; the condition of an asset reports its own.
fn is_switch(key: &str, catalog: &Catalog) -> bool {
    let conditions = catalog.assets.iter().flat_map(|asset| &asset.conditions).flat_map(Condition::leaves);
    let mut keys = conditions.filter_map(|condition| match condition {
        Condition::Annotation { key, value: Some(value) } if value == "true" => Some(key.as_str()),
        _ => None,
    });
    let is_named_so = catalog.annotations.contains(key) && short(key).starts_with("enable-");
    let is_declared = || catalog.settings.iter().any(|setting| setting.key == key && setting.is_boolean());
    (is_named_so || is_declared()) && keys.all(|checked| checked != key)
}

/// Whether a switch can be read; an empty one is off.
pub fn is_boolean(value: &str) -> bool {
    ["", "true", "false"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

/// What is wrong with the annotations of a managed object.
pub fn about_object(key: &Key, annotations: &BTreeMap<String, String>, wanted: impl FnOnce() -> Value) -> Vec<String> {
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

/// Whether an annotation is one of these, one of ours or one of the predecessor's.
pub fn is_known(key: &str, valid: &[&str]) -> bool {
    valid.contains(&key) || annotation::OURS.contains(&key) || PREDECESSORS.contains(&key)
}

/// What to say about an annotation that nobody reads.
pub fn unknown<'a>(key: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = nearest(short(key), valid.into_iter().map(short));
    format!("the annotation {key} is not known{} and has no effect", question(&nearest))
}

#[cfg(test)]
mod tests {
    use super::{MOST, Targets, about_object, about_platform};
    use crate::testing::pack::Pack;
    use change::{Key, Kind};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

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
        let about = |hco: &Value| about_platform(hco, &Pack::default().catalog(), &[], &Targets::default());
        assert_eq!(about(&on_hco).len(), MOST);
        assert!(about(&json!({"metadata": {"annotations": {"example.com/x": ""}}})).is_empty(), "not ours");
    }
}

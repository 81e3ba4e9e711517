//! What was recorded of an object under one version of its kind, under another one.

use api::hco;
use serde_json::{Map, Value, json};

/// The fields of an object under another version of its kind, and whether that is all of them: only what is known to have moved is converted.
/// `prefix` stands before each name, as in lists of owned fields.
pub fn converted(fields: &Value, from: &str, to: &str, prefix: &str) -> (Value, bool) {
    let (spec, metadata) = (format!("{prefix}spec"), format!("{prefix}metadata"));
    let others = fields.as_object().into_iter().flatten().filter(|(key, _)| **key != spec && **key != metadata);
    if from == to || (fields.get(&spec).is_none() && others.clone().next().is_none()) {
        return (fields.clone(), true);
    }
    let mut found = Map::new();
    found.extend(fields.get(&metadata).map(|metadata_fields| (metadata.clone(), metadata_fields.clone())));
    if !is_of_hyperconverged(from) || !is_of_hyperconverged(to) {
        return (Value::Object(found), false);
    }
    let (mut moved, mut is_whole) = (json!({}), others.count() == 0);
    for (name, value) in fields[&spec].as_object().into_iter().flatten() {
        let group =
            |(field, group): &(&str, &str)| (*name == format!("{prefix}{field}")).then(|| format!("{prefix}{group}"));
        let of_group = |(_, group): &(&str, &str)| *name == format!("{prefix}{group}");
        match (hco::GROUPED.iter().find_map(group), hco::GROUPED.iter().any(of_group)) {
            (Some(group), _) => moved[group][name] = value.clone(),
            (None, true) => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    is_whole &= hco::GROUPED.iter().any(|(field, _)| *name == format!("{prefix}{field}"));
                    moved[name] = value.clone();
                }
            }
            (None, false) => is_whole = false,
        }
    }
    found.insert(spec, moved);
    (Value::Object(found), is_whole)
}

/// The version under which fields were recorded that do not name it, as an earlier release recorded them; `present` if nothing tells.
pub fn version_of(fields: &Value, present: &str) -> String {
    if let Some(recorded) = fields["apiVersion"].as_str() {
        return recorded.to_owned();
    }
    let has = |name: &str| fields["spec"].get(name).is_some();
    let version = match is_of_hyperconverged(present) {
        true if hco::GROUPED.iter().any(|(field, _)| has(field)) => hco::VERSIONS[1],
        true if hco::GROUPED.iter().any(|(_, group)| has(group)) => hco::VERSIONS[0],
        _ => return present.to_owned(),
    };
    format!("{}/{version}", hco::GROUP)
}

fn is_of_hyperconverged(api_version: &str) -> bool {
    hco::VERSIONS.iter().any(|version| api_version.strip_prefix(hco::GROUP) == Some(&format!("/{version}")))
}

#[cfg(test)]
mod tests {
    use super::{converted, version_of};
    use serde_json::json;

    const OLD: &str = "hco.kubevirt.io/v1beta1";
    const NEW: &str = "hco.kubevirt.io/v1";

    #[test]
    fn what_moved_between_versions_of_the_hyperconverged_is_converted_there_and_back() {
        let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}}});
        let new = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"virtualization": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}}}});
        assert_eq!(converted(&old, OLD, NEW, ""), (new.clone(), true));
        assert_eq!(converted(&new, NEW, OLD, ""), (old.clone(), true));
        assert_eq!(converted(&old, OLD, OLD, ""), (old.clone(), true));
        let owned = json!({"f:spec": {"f:ksmConfiguration": {}}});
        let moved = json!({"f:spec": {"f:virtualization": {"f:ksmConfiguration": {}}}});
        assert_eq!(converted(&owned, OLD, NEW, "f:"), (moved, true));
        assert_eq!((version_of(&old, NEW).as_str(), version_of(&new, OLD).as_str()), (OLD, NEW));
    }

    #[test]
    fn what_nobody_knows_the_place_of_is_not_converted() {
        for fields in
            [json!({"spec": {"other": 1}}), json!({"spec": {"virtualization": {"other": 1}}}), json!({"data": {}})]
        {
            assert!(!converted(&fields, OLD, NEW, "").1, "{fields}");
        }
        let fields = json!({"spec": {"higherWorkloadDensity": {}}});
        assert!(!converted(&fields, "example.com/v1", "example.com/v2", "").1);
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(
            converted(&labels, "example.com/v1", "example.com/v2", ""),
            (labels.clone(), true),
            "it is the same in all"
        );
        assert_eq!(version_of(&fields, "example.com/v1"), "example.com/v1");
    }
}

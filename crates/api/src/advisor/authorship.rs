//! Who wrote the spec of a `VirtPlatformConfig`.

use super::{AUTO_CREATED, FIELD_MANAGER};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The field manager of the Go operator where it creates objects: the name of its program.
const GO_MANAGER: &str = "manager";

/// What the metadata of a `VirtPlatformConfig` says about who wrote its spec.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authorship {
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<Entry>>,
}

/// One entry of `managedFields`.
#[derive(Debug, Deserialize)]
struct Entry {
    manager: Option<String>,
    #[serde(rename = "fieldsV1")]
    fields: Option<Fields>,
}

#[derive(Debug, Deserialize)]
struct Fields {
    #[serde(rename = "f:spec")]
    spec: Option<IgnoredAny>,
}

impl Authorship {
    /// Whether the object only tells of a profile: the advisor created it for that, and nobody has written its spec since. The generation alone
    /// does not say so: an object that was edited and then restored from a backup begins with the first one again, but somebody else created it.
    pub fn only_tells(&self) -> bool {
        let is_advertised =
            self.annotations.as_ref().and_then(|all| all.get(AUTO_CREATED)).is_some_and(|value| value == "true");
        let mut writers = self
            .managed_fields
            .iter()
            .flatten()
            .filter(|entry| entry.fields.as_ref().is_some_and(|fields| fields.spec.is_some()));
        let is_of_advisor = |entry: &Entry| {
            entry.manager.as_deref().is_some_and(|manager| [FIELD_MANAGER, GO_MANAGER].contains(&manager))
        };
        is_advertised
            && self.generation.unwrap_or_default() <= 1
            && writers.next().is_some_and(is_of_advisor)
            && writers.all(is_of_advisor)
    }
}

#[cfg(test)]
mod tests {
    use super::Authorship;
    use serde_json::{Value, json};

    fn only_tells(is_advertised: bool, generation: i64, managers: &[&str]) -> bool {
        let annotations = if is_advertised { json!({"advisor.kubevirt.io/auto-created": "true"}) } else { Value::Null };
        let spec = json!({"f:spec": {"f:action": {}}});
        let entry = |manager: &&str| json!({"manager": manager, "operation": "Update", "fieldsV1": spec});
        let mut entries: Vec<Value> = managers.iter().map(entry).collect();
        entries.push(json!({"manager": "x", "subresource": "status", "fieldsV1": {"f:status": {}}}));
        let metadata =
            json!({"name": "a", "generation": generation, "annotations": annotations, "managedFields": entries});
        serde_json::from_value::<Authorship>(metadata).unwrap().only_tells()
    }

    #[test]
    fn an_object_only_tells_of_a_profile_as_long_as_only_the_advisor_wrote_its_spec() {
        assert!(only_tells(true, 1, &["virt-advisor-operator"]) && only_tells(true, 1, &["manager"]));
        assert!(!only_tells(false, 1, &["virt-advisor-operator"]), "a person made it");
        assert!(!only_tells(true, 2, &["virt-advisor-operator"]), "somebody has edited it, and taken that back");
        assert!(!only_tells(true, 1, &["velero-server"]), "it was restored, and may have been edited before");
        assert!(!only_tells(true, 1, &["virt-advisor-operator", "kubectl-edit"]));
        assert!(!only_tells(true, 1, &[]), "nobody knows who wrote it");
        assert!(!Authorship::default().only_tells());
    }
}

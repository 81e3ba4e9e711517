//! One object as the model stores it, and what a reader gets to see of it.

use crate::fields::{Path, from_fields_v1, to_fields_v1};
use change::{Key, Live, ManagedFields};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One object.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The object without its managedFields.
    pub object: Value,
    /// Its managedFields.
    pub owners: Vec<Owner>,
    /// Who created it.
    pub creator: String,
}

/// One entry of managedFields.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// The field manager.
    pub manager: String,
    /// Whether it applies; otherwise it updates.
    pub applies: bool,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: String,
    /// When it last wrote.
    pub time: String,
    /// What it owns.
    pub fields: BTreeSet<Path>,
}

impl Owner {
    fn to_value(&self) -> Value {
        let operation = if self.applies { "Apply" } else { "Update" };
        let mut entry = json!({"manager": self.manager, "operation": operation, "apiVersion": "v1", "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(&self.fields)});
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    /// Reads one entry of managedFields.
    pub fn read(entry: &Value) -> Owner {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let (applies, fields) = (entry["operation"] == "Apply", from_fields_v1(&entry["fieldsV1"]));
        Owner { manager: text("manager"), applies, subresource: text("subresource"), time: text("time"), fields }
    }
}

impl Stored {
    /// Its uid.
    pub fn uid(&self) -> &str {
        self.object["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// Its resourceVersion.
    pub fn version(&self) -> &str {
        self.object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// Its generation.
    pub fn generation(&self) -> i64 {
        self.object["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    /// One of its annotations.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][key].as_str()
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object["metadata"]["deletionTimestamp"].is_string()
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> Vec<String> {
        let finalizers = self.object["metadata"]["finalizers"].as_array();
        finalizers.into_iter().flatten().filter_map(|finalizer| Some(finalizer.as_str()?.to_owned())).collect()
    }

    /// The fields that a manager owns by its applies.
    pub fn applied_by(&self, manager: &str) -> Option<&BTreeSet<Path>> {
        self.owners.iter().find(|owner| owner.applies && owner.manager == manager).map(|owner| &owner.fields)
    }

    fn managed_fields(&self) -> Value {
        self.owners.iter().map(Owner::to_value).collect()
    }

    /// The whole object, in the version of a kind.
    pub fn whole(&self, api_version: &str) -> Value {
        let mut object = self.object.clone();
        object["apiVersion"] = json!(api_version);
        object["metadata"]["managedFields"] = self.managed_fields();
        object
    }

    /// Its metadata, as the operator keeps it.
    pub fn live(&self) -> Live {
        let metadata = &self.object["metadata"];
        let time = |key: &str| metadata[key].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        let annotations = metadata["annotations"].as_object().into_iter().flatten();
        let ours = annotations.filter(|(key, _)| key.starts_with(api::annotation::PREFIX));
        Live {
            uid: self.uid().to_owned(),
            resource_version: self.version().to_owned(),
            annotations: ours.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            managed_fields: ManagedFields::new(&self.managed_fields().to_string()),
            labelled: metadata["labels"][api::MANAGED_BY.0] == api::MANAGED_BY.1,
            created: time("creationTimestamp"),
            deleting: time("deletionTimestamp"),
            finalizers: self.finalizers(),
        }
    }

    /// Its identity and version: all that a watch of names keeps.
    pub fn name_and_version(&self) -> Live {
        let Live { uid, resource_version, deleting, .. } = self.live();
        Live { uid, resource_version, deleting, ..Live::default() }
    }
}

/// Objects are stored whatever the version of their kind.
pub fn id(key: &Key) -> Key {
    let mut id = key.clone();
    id.kind.version.clear();
    id
}

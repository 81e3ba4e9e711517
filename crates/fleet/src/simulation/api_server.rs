//! A small API server: objects with versions, finalizers and preconditions, and a log that watches follow.

use crate::identity::IDENTITY;
use change::{Effect, Key, Live};
use jiff::Timestamp;
use protocol::{Body, Groups, Kinds, WatchEvent, Write, WriteError, Written};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Id = (String, String, String);

/// The objects of one cluster, as JSON.
#[derive(Default)]
pub(super) struct ApiServer {
    pub(super) objects: BTreeMap<Id, Value>,
    version: u64,
    uids: u64,
    /// Every change: its version, the object, and what became of it.
    pub(super) log: Vec<(u64, Id, Option<Value>)>,
    /// Uids of objects that are gone, in the order in which they went.
    pub(super) gone: Vec<String>,
}

pub(super) fn id(kind: &str, name: &str) -> Id {
    (kind.to_owned(), "ci".to_owned(), name.to_owned())
}

fn id_of(key: &Key) -> Id {
    (key.kind.kind.clone(), key.namespace.clone(), key.name.clone())
}

/// All kinds that the fleet needs, as a server serves them.
pub(super) fn kinds() -> Kinds {
    let resource = |plural: &str, kind: &str, scope: &str| json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": ["list"]});
    let core = json!({"items": [{"metadata": {}, "versions": [
        {"version": "v1", "resources": [resource("secrets", "Secret", "Namespaced")]},
    ]}]});
    let fleet = ["HypervisorCluster", "HypervisorMachineTemplate", "RunnerPool", "MachineClaim"]
        .map(|kind| resource(&format!("{}s", kind.to_lowercase()), kind, "Namespaced"));
    let crds = resource("customresourcedefinitions", "CustomResourceDefinition", "Cluster");
    let groups = json!({"items": [
        {"metadata": {"name": "hyperfleet.io"}, "versions": [{"version": "v1alpha1", "resources": fleet}]},
        {"metadata": {"name": "apiextensions.k8s.io"}, "versions": [{"version": "v1", "resources": [crds]}]},
    ]});
    Kinds::read(&core.to_string(), Groups::read(&groups.to_string(), "tag".into()).unwrap()).unwrap()
}

pub(super) fn live(object: &Value) -> Live {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let time = |field: &str| metadata[field].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    Live {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        annotations: annotations
            .filter(|(key, _)| key.starts_with(IDENTITY.annotation_prefix))
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
        created: time("creationTimestamp"),
        deleting: time("deletionTimestamp"),
        finalizers: serde_json::from_value(metadata["finalizers"].clone()).unwrap_or_default(),
        ..Live::default()
    }
}

/// What a watch reports of a change.
pub(super) fn report((version, (_, namespace, name), object): &(u64, Id, Option<Value>)) -> WatchEvent {
    let (namespace, name) = (namespace.clone(), name.clone());
    match object {
        None => WatchEvent::Gone { namespace, name, version: version.to_string() },
        Some(object) => WatchEvent::Present {
            namespace,
            name,
            live: live(object),
            generation: object["metadata"]["generation"].as_i64().unwrap_or_default(),
            body: Body::Whole(object.clone()),
        },
    }
}

impl ApiServer {
    /// Creates an object.
    pub(super) fn create(&mut self, mut object: Value, uid_prefix: &str, now: Timestamp) {
        let id = id(object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        if self.objects.contains_key(&id) {
            return;
        }
        self.uids += 1;
        object["metadata"]["uid"] = json!(format!("{uid_prefix}-{}", self.uids));
        object["metadata"]["namespace"] = json!("ci");
        object["metadata"]["creationTimestamp"] = json!(now.to_string());
        object["metadata"]["generation"] = json!(1);
        self.store(&id, object);
    }

    fn store(&mut self, id: &Id, mut object: Value) {
        let is_ending = object["metadata"]["deletionTimestamp"].is_string();
        let has_finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if is_ending && !has_finalizers {
            self.objects.remove(id);
            self.gone.push(object["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
            self.log.push((self.version, id.clone(), None));
        } else {
            self.objects.insert(id.clone(), object.clone());
            self.log.push((self.version, id.clone(), Some(object)));
        }
    }

    /// A person changes something that does not matter.
    pub(super) fn touch(&mut self, id: &Id) {
        if let Some(mut object) = self.objects.get(id).cloned() {
            object["metadata"]["labels"]["touched"] = json!(self.version.to_string());
            self.store(id, object);
        }
    }

    /// A person changes the spec of an object.
    pub(super) fn edit(&mut self, id: &Id, change: impl FnOnce(&mut Value)) {
        let mut object = self.objects[id].clone();
        change(&mut object["spec"]);
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        object["metadata"]["generation"] = json!(generation + 1);
        self.store(id, object);
    }

    /// Somebody sets an annotation, or removes it.
    pub(super) fn annotate(&mut self, id: &Id, key: &str, value: Option<&str>) {
        let mut object = self.objects[id].clone();
        match (value, object["metadata"]["annotations"].as_object_mut()) {
            (None, Some(all)) => {
                all.remove(key);
            }
            (None, None) => {}
            (Some(value), _) => object["metadata"]["annotations"][key] = json!(value),
        }
        self.store(id, object);
    }

    /// A person removes what keeps an object.
    pub(super) fn remove_finalizers(&mut self, id: &Id) {
        let mut object = self.objects[id].clone();
        object["metadata"]["finalizers"] = json!([]);
        self.store(id, object);
    }

    /// A person deletes an object.
    pub(super) fn delete(&mut self, id: &Id, now: Timestamp) {
        if let Some(mut object) = self.objects.get(id).cloned()
            && object["metadata"]["deletionTimestamp"].is_null()
        {
            object["metadata"]["deletionTimestamp"] = json!(now.to_string());
            self.store(id, object);
        }
    }

    /// The names of all objects of a kind.
    pub(super) fn all(&self, kind: &str) -> BTreeSet<(String, String)> {
        self.objects.keys().filter(|id| id.0 == kind).map(|id| (id.1.clone(), id.2.clone())).collect()
    }

    /// Carries out a write.
    #[expect(clippy::result_large_err, reason = "it is what a core is told")]
    pub(super) fn write(&mut self, write: &Write, uid_prefix: &str, now: Timestamp) -> Result<Written, WriteError> {
        let id = id_of(&write.key);
        let stale = || Err(WriteError::Stale(write.key.clone()));
        let found = self.objects.get(&id).cloned();
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let refused = || WriteError::Refused { key: write.key.clone(), code: 404, message: "not found".into() };
        match &write.effect {
            Effect::Create { object } => {
                if found.is_some() {
                    return Ok(Written::default());
                }
                self.create(object.clone(), uid_prefix, now);
            }
            Effect::ReplaceStatus { object } => {
                let mut found = found.ok_or_else(refused)?;
                let metadata = &object["metadata"];
                if metadata["resourceVersion"] != version(&found) || metadata["uid"] != found["metadata"]["uid"] {
                    return stale();
                }
                found["status"] = object["status"].clone();
                self.store(&id, found);
            }
            Effect::JsonPatch { patch } => {
                let mut found = found.ok_or_else(refused)?;
                if patch[0]["value"] != version(&found) {
                    return stale();
                }
                match patch[1]["path"].as_str().unwrap() {
                    "/metadata/finalizers" => found["metadata"]["finalizers"] = patch[1]["value"].clone(),
                    "/spec/power" => found["spec"]["power"] = patch[1]["value"].clone(),
                    other => panic!("{other}"),
                }
                let before = live(&found);
                self.store(&id, found);
                // The answer is the object as it was written, also if it is gone now.
                let after = self.objects.get(&id).map(live);
                let version = self.version.to_string();
                let live = after.or(Some(Live { resource_version: version, ..before }));
                return Ok(Written { live, before: None });
            }
            Effect::Annotate { annotations, resource_version } => {
                let mut found = found.ok_or_else(refused)?;
                if version(&found) != json!(resource_version) {
                    return stale();
                }
                for (key, value) in annotations {
                    found["metadata"]["annotations"][key] = json!(value);
                }
                self.store(&id, found);
            }
            Effect::Delete { uid, resource_version } => {
                let Some(found) = found else { return Ok(Written::default()) };
                if found["metadata"]["uid"] != json!(uid) || version(&found) != json!(resource_version) {
                    return stale();
                }
                self.delete(&id, now);
            }
            other => panic!("{other:?}"),
        }
        Ok(Written { live: self.objects.get(&id).map(live), before: None })
    }
}

//! An in-memory model of the Kubernetes API server: objects, versions, owners of fields, and a log of every change.

use crate::fields::{self, Path, leaves, overlap};
use crate::stored::{Owner, Stored, id};
use change::{Key, Kind};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// An object with this value anywhere is refused as invalid.
pub const INVALID: &str = "invalid";

/// The server.
#[derive(Debug, Clone)]
pub struct ApiServer {
    objects: BTreeMap<Key, Rc<Stored>>,
    /// The kinds that are served.
    pub kinds: Vec<ServedKind>,
    /// How often what is served has changed: the tag of a discovery.
    pub discoveries: u64,
    /// The last resourceVersion.
    pub version: u64,
    uids: u64,
    /// The present moment.
    pub now: Timestamp,
    /// Every change, in order.
    pub log: Vec<Change>,
    /// Every request to delete an object that existed.
    pub deletions: Vec<Deletion>,
    /// How the content of objects is shown, where a server normalizes it.
    pub shown: Option<fn(&mut Value)>,
}

/// A kind that is served.
#[derive(Debug, Clone)]
pub struct ServedKind {
    /// The kind.
    pub kind: Kind,
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
    /// Its CRD, if it has one.
    pub crd: Option<String>,
}

/// One change that moved the resourceVersion.
#[derive(Debug, Clone)]
pub struct Change {
    /// The object.
    pub id: Key,
    /// The resourceVersion that it led to.
    pub version: u64,
    /// The object after it; `None` if it was deleted.
    pub after: Option<Rc<Stored>>,
}

/// One request to delete an object that existed.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// Who asked.
    pub by: String,
    /// The object as it was: its uid, creator and origin.
    pub before: Rc<Stored>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// 409.
    Conflict(String),
    /// The server refuses it.
    Refused(u16, String),
}

/// The object after a write; `None` if it is gone.
pub type Outcome = Result<Option<Rc<Stored>>, Failure>;

impl ApiServer {
    /// A server that serves nothing.
    pub fn new(now: Timestamp) -> ApiServer {
        ApiServer {
            objects: BTreeMap::new(),
            kinds: Vec::new(),
            discoveries: 0,
            version: 1,
            uids: 0,
            now,
            log: Vec::new(),
            deletions: Vec::new(),
            shown: None,
        }
    }

    /// A copy for a dry run: without what was logged.
    pub fn copy(&self) -> ApiServer {
        let (objects, kinds) = (self.objects.clone(), self.kinds.clone());
        ApiServer { objects, kinds, log: Vec::new(), deletions: Vec::new(), ..*self }
    }

    /// Restores what a backup has, in the versions of then. Time goes on, and no uid is given twice.
    pub fn restore(&mut self, backup: &ApiServer) {
        *self = ApiServer { uids: self.uids, now: self.now, ..backup.clone() };
    }

    /// An object, if it exists and its kind is served.
    pub fn get(&self, key: &Key) -> Option<&Rc<Stored>> {
        self.objects.get(&id(key)).filter(|_| self.serves(&key.kind))
    }

    /// The objects of a kind, in all namespaces or in one.
    pub fn list(&self, kind: &Kind, namespace: &str) -> Vec<(&Key, &Rc<Stored>)> {
        let matches = |key: &&Key| is_of(key, kind, namespace);
        self.objects.iter().filter(|(key, _)| matches(key)).collect()
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = (&Key, &Rc<Stored>)> {
        self.objects.iter()
    }

    /// Server-side apply. Preconditions are uid and resourceVersion in the object's metadata.
    pub fn apply(&mut self, manager: &str, key: &Key, object: &Value, force: bool) -> Outcome {
        self.admit(key, object)?;
        let wanted = leaves(object);
        let metadata = &object["metadata"];
        let Some(before) = self.get(key).cloned() else {
            if metadata["uid"].is_string() {
                return Err(Failure::Conflict(format!("{key} does not exist")));
            }
            let fields = wanted.keys().cloned().collect();
            let owner = owner(manager, true, self.time(), fields);
            return Ok(Some(self.insert(key, object, owner)));
        };
        let is_another =
            |field: &str| metadata[field].is_string() && metadata[field] != before.object["metadata"][field];
        if is_another("uid") && metadata["resourceVersion"].is_null() {
            return Err(Failure::Refused(422, "metadata.uid: Invalid value: field is immutable".into()));
        }
        if is_another("uid") || is_another("resourceVersion") {
            return Err(Failure::Conflict(format!("{key} is another")));
        }
        let (live, mut owners) = (leaves(&before.object), before.owners.clone());
        let index = owners.iter().position(|owner| owner.applies && owner.manager == manager);
        let mut conflicts = Vec::new();
        for (path, _) in wanted.iter().filter(|(path, value)| live.get(*path) != Some(*value)) {
            for (_, owner) in owners.iter_mut().enumerate().filter(|(number, _)| Some(*number) != index) {
                if owner.fields.iter().any(|field| overlap(field, path)) {
                    conflicts.push(format!("{} of {}", path.join("."), owner.manager));
                    owner.fields.retain(|field| !overlap(field, path));
                }
            }
        }
        if !conflicts.is_empty() && !force {
            return Err(Failure::Conflict(format!("conflicts: {}", conflicts.join(", "))));
        }
        let mut after = before.object.clone();
        let dropped = index.map(|index| std::mem::take(&mut owners[index].fields)).unwrap_or_default();
        for path in dropped.iter().filter(|path| !wanted.contains_key(*path)) {
            if !owners.iter().any(|owner| owner.fields.iter().any(|field| overlap(field, path))) {
                fields::remove(&mut after, path);
            }
        }
        for (path, value) in &wanted {
            fields::set(&mut after, path, value.clone());
        }
        let fields = wanted.into_keys().collect();
        let is_changed = after != before.object || Some(&fields) != before.applied_by(manager);
        let time = match index {
            Some(index) if !is_changed => owners[index].time.clone(),
            _ => self.time(),
        };
        let owner = owner(manager, true, time, fields);
        match index {
            Some(index) => owners[index] = owner,
            None => owners.push(owner),
        }
        Ok(self.commit(key, &before, after, owners))
    }

    /// Changes a whole object, managedFields included, as a plain update. A change of resourceVersion or uid is a precondition.
    pub fn update(&mut self, manager: &str, key: &Key, change: impl FnOnce(&mut Value)) -> Outcome {
        self.update_through("", manager, key, change)
    }

    /// The same through the subresource `status`, which has owners of its own.
    pub fn update_status(&mut self, manager: &str, key: &Key, change: impl FnOnce(&mut Value)) -> Outcome {
        self.update_through("status", manager, key, change)
    }

    fn update_through(
        &mut self,
        subresource: &str,
        manager: &str,
        key: &Key,
        change: impl FnOnce(&mut Value),
    ) -> Outcome {
        let Some(before) = self.get(key).cloned() else {
            return Err(Failure::Refused(404, format!("{key} not found")));
        };
        let mut after = before.whole(&key.kind.api_version());
        let listed = after["metadata"]["managedFields"].clone();
        change(&mut after);
        self.admit(key, &after)?;
        let metadata = after["metadata"].as_object_mut().expect("every object has metadata");
        let managed_fields = metadata.remove("managedFields").unwrap_or_default();
        for field in ["uid", "resourceVersion"] {
            if metadata.get(field) != before.object["metadata"].get(field) {
                return Err(Failure::Conflict(format!("the {field} of {key} is another")));
            }
        }
        // An empty map or list in metadata is none.
        metadata.retain(|_, value| *value != json!({}) && *value != json!([]));
        after["apiVersion"] = before.object["apiVersion"].clone();
        let mut owners = before.owners.clone();
        if managed_fields != listed {
            owners = managed_fields.as_array().into_iter().flatten().map(Owner::read).collect();
        }
        let (old, new) = (leaves(&before.object), leaves(&after));
        let set: Vec<_> = new.iter().filter(|(path, value)| old.get(*path) != Some(*value)).collect();
        let removed = old.keys().filter(|path| !new.contains_key(*path));
        let changed: Vec<_> = set.iter().map(|(path, _)| *path).chain(removed).collect();
        let is_its = |owner: &Owner| !owner.applies && owner.manager == manager && owner.subresource == subresource;
        for owner in &mut owners {
            owner.fields.retain(|field| !changed.iter().any(|path| overlap(field, path)));
        }
        if !set.is_empty() {
            let subresource = subresource.to_owned();
            let new = Owner { subresource, ..owner(manager, false, self.time(), Default::default()) };
            let index = owners.iter().position(is_its);
            let index = index.unwrap_or_else(|| {
                owners.push(new);
                owners.len() - 1
            });
            owners[index].fields.extend(set.iter().map(|(path, _)| (*path).clone()));
            owners[index].time = self.time();
        }
        Ok(self.commit(key, &before, after, owners))
    }

    /// Creates an object; `None` if it exists.
    pub fn create(&mut self, manager: &str, key: &Key, object: &Value) -> Outcome {
        self.admit(key, object)?;
        if self.get(key).is_some() {
            return Ok(None);
        }
        let fields = leaves(object).into_keys().collect();
        let owner = owner(manager, false, self.time(), fields);
        Ok(Some(self.insert(key, object, owner)))
    }

    /// Deletes an object, with uid and resourceVersion as preconditions if they are given.
    pub fn delete(&mut self, manager: &str, key: &Key, precondition: Option<(&str, &str)>) -> Outcome {
        let Some(before) = self.get(key).cloned() else { return Ok(None) };
        if precondition.is_some_and(|(uid, version)| (uid, version) != (before.uid(), before.version())) {
            return Err(Failure::Conflict(format!("{key} has changed")));
        }
        self.deletions.push(Deletion { by: manager.to_owned(), before: Rc::clone(&before) });
        if before.finalizers().is_empty() {
            self.remove(&id(key));
            return Ok(None);
        }
        let mut after = before.object.clone();
        if !before.is_deleting() {
            after["metadata"]["deletionTimestamp"] = json!(self.time());
        }
        Ok(self.commit(key, &before, after, before.owners.clone()))
    }

    fn admit(&self, key: &Key, object: &Value) -> Result<(), Failure> {
        if !self.serves(&key.kind) {
            return Err(Failure::Refused(404, "the server could not find the requested resource".into()));
        }
        let is_invalid = |value: &Value| value == INVALID || value.to_string().contains(&format!("{INVALID:?}"));
        match leaves(object).into_iter().find(|(path, value)| path[0] != "metadata" && is_invalid(value)) {
            Some((path, _)) => Err(Failure::Refused(422, format!("{}: Invalid value", path.join(".")))),
            None => Ok(()),
        }
    }

    fn insert(&mut self, key: &Key, object: &Value, owner: Owner) -> Rc<Stored> {
        let (creator, mut object) = (owner.manager.clone(), object.clone());
        self.uids += 1;
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(format!("u{}", self.uids));
        metadata["creationTimestamp"] = json!(self.time());
        metadata["generation"] = json!(1);
        self.put(&id(key), Stored { object, owners: vec![owner], creator })
    }

    /// Stores what has changed: a write that changes nothing moves no version and is reported by no watch.
    fn commit(
        &mut self,
        key: &Key,
        before: &Rc<Stored>,
        mut object: Value,
        mut owners: Vec<Owner>,
    ) -> Option<Rc<Stored>> {
        owners.retain(|owner| !owner.fields.is_empty());
        if before.object == object && before.owners == owners {
            return Some(Rc::clone(before));
        }
        let specs = [&before.object, &object].map(|object| {
            let fields = object.as_object().into_iter().flatten();
            fields.filter(|(key, _)| !["metadata", "status"].contains(&key.as_str())).collect::<Vec<_>>()
        });
        if specs[0] != specs[1] {
            object["metadata"]["generation"] = json!(before.generation() + 1);
        }
        let after = Stored { object, owners, creator: before.creator.clone() };
        if after.is_deleting() && after.finalizers().is_empty() {
            self.remove(&id(key));
            return None;
        }
        Some(self.put(&id(key), after))
    }

    fn put(&mut self, id: &Key, mut stored: Stored) -> Rc<Stored> {
        self.version += 1;
        stored.object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let stored = Rc::new(stored);
        self.objects.insert(id.clone(), Rc::clone(&stored));
        self.log.push(Change { id: id.clone(), version: self.version, after: Some(Rc::clone(&stored)) });
        stored
    }

    /// Removes an object, whatever finalizers it has.
    pub fn remove(&mut self, id: &Key) {
        self.version += 1;
        self.objects.remove(id);
        self.log.push(Change { id: id.clone(), version: self.version, after: None });
    }

    /// The time as managedFields have it: in seconds.
    pub fn time(&self) -> String {
        Timestamp::from_second(self.now.as_second()).unwrap_or_default().to_string()
    }
}

/// An owner that writes the object itself.
fn owner(manager: &str, applies: bool, time: String, fields: BTreeSet<Path>) -> Owner {
    Owner { manager: manager.to_owned(), applies, subresource: String::new(), time, fields }
}

/// Whether an object is of this kind, in this namespace or in any.
pub fn is_of(id: &Key, kind: &Kind, namespace: &str) -> bool {
    (&id.kind.group, &id.kind.kind) == (&kind.group, &kind.kind) && (namespace.is_empty() || id.namespace == namespace)
}

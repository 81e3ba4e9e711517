//! One object with its write in flight. There is at most one, and it is for the version that it was decided for.

use crate::object::{Name, Object, fleet_kind, own_annotations};
use change::{Backoff, Effect, Key, Moment};
use protocol::{Kinds, Write, WriteError, Written};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// A write that failed is tried again after this, or when the object changes.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// An object with its write in flight.
#[derive(Debug)]
pub(super) struct Entry<S, T> {
    pub(super) object: Object<S, T>,
    writing: Option<Writing<T>>,
    /// How many writes in a row have failed.
    failures: u32,
    /// Before this moment nothing is written, unless the object changes.
    pub(super) blocked_until: Option<Moment>,
    /// Whether it was deleted, and the watch has not reported that yet.
    is_gone: bool,
}

#[derive(Debug)]
enum Writing<T> {
    Status(Box<T>),
    Metadata,
    /// The answer does not say the spec: the watch does.
    Spec,
}

impl<S, T: Serialize + Clone + PartialEq> Entry<S, T> {
    pub(super) fn new(object: Object<S, T>) -> Entry<S, T> {
        Entry { object, writing: None, failures: 0, blocked_until: None, is_gone: false }
    }

    /// Takes a newer version; whether it is one.
    pub(super) fn observe(&mut self, object: Object<S, T>) -> bool {
        if object.uid == self.object.uid && object.version_number() <= self.object.version_number() {
            return false;
        }
        (self.object, self.blocked_until) = (object, None);
        true
    }

    /// The server's versions went back: the next report counts, whatever its version is.
    pub(super) fn forget_version(&mut self) {
        self.object.version = "0".into();
    }

    /// Whether it can be written now.
    pub(super) fn is_writable(&self, now: Moment) -> bool {
        self.writing.is_none() && !self.is_gone && self.blocked_until.is_none_or(|until| until <= now)
    }

    /// The write of a status.
    pub(super) fn status(&mut self, kind: &str, kinds: &Kinds, status: T) -> Option<Write> {
        let Object { name, uid, version, .. } = &self.object;
        let metadata =
            json!({"name": &*name.name, "namespace": &*name.namespace, "uid": uid, "resourceVersion": version});
        let api_version = fleet_kind(kind).api_version();
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status});
        let write = self.write(kind, kinds, Effect::ReplaceStatus { object })?;
        self.writing = Some(Writing::Status(Box::new(status)));
        Some(write)
    }

    /// The write of all finalizers with or without one.
    pub(super) fn finalizer(&mut self, kind: &str, kinds: &Kinds, finalizer: &str, is_wanted: bool) -> Option<Write> {
        let mut all: Vec<String> = self.object.finalizers.iter().filter(|found| *found != finalizer).cloned().collect();
        if is_wanted {
            all.push(finalizer.to_owned());
        }
        self.patch(kind, kinds, &json!({"op": "add", "path": "/metadata/finalizers", "value": all}))
    }

    /// A change of one field of the spec, in the version that it was decided for.
    pub(super) fn spec(&mut self, kind: &str, kinds: &Kinds, change: &Value) -> Option<Write> {
        let write = self.patch(kind, kinds, change)?;
        self.writing = Some(Writing::Spec);
        Some(write)
    }

    fn patch(&mut self, kind: &str, kinds: &Kinds, change: &Value) -> Option<Write> {
        let guard = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": self.object.version});
        let write = self.write(kind, kinds, Effect::JsonPatch { patch: json!([guard, change]) })?;
        self.writing = Some(Writing::Metadata);
        Some(write)
    }

    /// Annotations, in the version that they were decided for.
    pub(super) fn annotate(&mut self, kind: &str, kinds: &Kinds, annotation: &str, value: &str) -> Option<Write> {
        let annotations = [(annotation.to_owned(), Some(value.to_owned()))].into();
        let resource_version = self.object.version.clone();
        let write = self.write(kind, kinds, Effect::Annotate { annotations, resource_version })?;
        self.writing = Some(Writing::Metadata);
        Some(write)
    }

    /// The deletion of the object.
    pub(super) fn delete(&mut self, kind: &str, kinds: &Kinds) -> Option<Write> {
        let (uid, resource_version) = (self.object.uid.clone(), self.object.version.clone());
        let write = self.write(kind, kinds, Effect::Delete { uid, resource_version })?;
        self.writing = Some(Writing::Metadata);
        Some(write)
    }

    fn write(&self, kind: &str, kinds: &Kinds, effect: Effect) -> Option<Write> {
        let key = self.object.name.key(kind);
        let served = kinds.find(&key.kind)?;
        Some(Write { key, served, effect, attempt: self.failures.min(3), backup: None })
    }

    /// Takes the answer to the write; an error if it is to be reported.
    pub(super) fn written(&mut self, result: &Result<Written, WriteError>, now: Moment) -> Result<(), String> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        match result {
            Ok(written) => {
                (self.failures, self.blocked_until) = (0, None);
                let Some(live) = &written.live else {
                    self.is_gone = true;
                    return Ok(());
                };
                if live.uid != self.object.uid || live.version() < Some(self.object.version_number()) {
                    // The object has changed since, and the watch has reported that before this answer came.
                    return Ok(());
                }
                if matches!(writing, Writing::Spec) {
                    let is_unseen = live.version() > Some(self.object.version_number());
                    self.blocked_until = is_unseen.then(|| now.after(AGAIN.first));
                    return Ok(());
                }
                self.object.version.clone_from(&live.resource_version);
                match writing {
                    Writing::Spec => {}
                    Writing::Status(status) => self.object.status = *status,
                    Writing::Metadata => {
                        self.object.finalizers.clone_from(&live.finalizers);
                        self.object.deleting = live.deleting;
                        self.object.annotations = own_annotations(&live.annotations);
                    }
                }
                Ok(())
            }
            Err(error) => {
                let pause = AGAIN.pause(self.failures);
                self.failures = self.failures.saturating_add(1);
                self.blocked_until = Some(now.after(pause));
                match error {
                    // The watch reports what has changed.
                    WriteError::Stale(_) => Ok(()),
                    error => Err(error.to_string()),
                }
            }
        }
    }
}

/// The key of an object of the fleet as its name.
pub(super) fn name_of(key: &Key) -> Name {
    Name::new(&key.namespace, &key.name)
}

//! Carries out the core's commands on the model, with the faults that a story asks for.

use crate::notice::Notice;
use crate::testing::bed::TestBed;
use crate::testing::fields::merge;
use crate::testing::print;
use crate::testing::server::{Failure, Outcome};
use crate::testing::stored::Stored;
use api::FIELD_MANAGER;
use catalog::Answer;
use change::backup::slots::{self, Slot};
use change::{Effect, Key, Kind, backup, list_repair};
use protocol::{Command, Event, Write, WriteError, Written};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// What goes wrong with one request about an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// The server refuses the write with this status and message.
    Refused(u16, &'static str),
    /// A list item has another key.
    KeyChanged,
    /// The backup fails.
    NoBackup,
    /// The request does not arrive.
    Transient,
    /// The write is made, but its answer is lost.
    Unanswered,
}

impl Fault {
    /// The error of a write that meets it, unless the write is made.
    fn of_write(self, key: &Key, effect: &Effect, is_backed_up: bool) -> Option<WriteError> {
        let (key, message) = (key.clone(), "injected".to_owned());
        match self {
            Fault::Unanswered => None,
            Fault::Refused(code, message) => Some(WriteError::Refused { key, code, message: message.to_owned() }),
            Fault::KeyChanged => {
                matches!(effect, Effect::Apply { .. }).then_some(WriteError::KeyChanged { key, message })
            }
            Fault::NoBackup => is_backed_up.then_some(WriteError::NoBackup { key, message }),
            Fault::Transient => Some(WriteError::Transient { key, message }),
        }
    }
}

/// One write of the core that was carried out.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) write: Write,
    /// The object before and after it.
    pub(crate) before: Option<Rc<Stored>>,
    pub(crate) after: Option<Rc<Stored>>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |stored: &Option<Rc<Stored>>| {
            stored.as_ref().map_or("nothing".to_owned(), |stored| stored.whole("").to_string())
        };
        let verb = print::verb(&self.write.effect);
        write!(f, "{verb} {}\nbefore: {}\nafter:  {}", self.write.key, whole(&self.before), whole(&self.after))
    }
}

impl Made {
    /// Whether it moved the resourceVersion.
    pub(crate) fn has_moved(&self) -> bool {
        self.before != self.after
    }

    /// Whether the object was as it should be before it: equal but for the budget, and all fields owned.
    pub(crate) fn is_needless(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return false };
        let content = |stored: &Stored| {
            let mut object = stored.object.clone();
            let metadata = &mut object["metadata"];
            metadata["resourceVersion"].take();
            metadata["annotations"][api::annotation::BUDGET].take();
            object
        };
        self.has_moved()
            && content(before) == content(after)
            && before.applied_by(FIELD_MANAGER) == after.applied_by(FIELD_MANAGER)
            && before.owners.len() == after.owners.len()
    }
}

impl TestBed {
    /// Carries out a request; its answer waits to be delivered.
    pub(crate) fn carry_out(&mut self, request: Command<Notice>) {
        let event = match request {
            Command::Discover { tag } => Event::Discovered(match self.fault_of_reads() {
                Some(why) => Err(why),
                None => Ok(self.server.discover(tag.as_deref())),
            }),
            Command::Query { query, .. } => {
                let answer = match self.fault_of_reads() {
                    Some(_) => Answer::Unknown,
                    None => self.server.answer(&query),
                };
                Event::Answered(query, answer)
            }
            Command::Refetch { key, .. } => {
                let found = match self.fault_of_reads() {
                    Some(why) => Err(why),
                    None => Ok(self.server.get(&key).map(|stored| stored.live())),
                };
                Event::Refetched(key, found)
            }
            Command::Inspect { key, .. } => {
                let is_unreadable = self.unreadable.as_ref() == Some(&key.kind.kind);
                let found = match self.fault_of_reads().or(is_unreadable.then(|| "forbidden".to_owned())) {
                    Some(why) => Err(why),
                    None => Ok(self.server.inspect(&key)),
                };
                Event::Inspected(key, found)
            }
            Command::Search { search, .. } => {
                let found = match self.fault_of_reads() {
                    Some(why) => Err(why),
                    None => Ok(self.server.search(&search)),
                };
                Event::Found(search, found)
            }
            Command::Preview { key, effect, .. } => {
                let previewed = self.preview(&key, &effect).map_err(|error| *error);
                Event::Previewed(key, previewed)
            }
            Command::Write(write) => {
                let key = write.key.clone();
                Event::Written(key, self.write(*write).map_err(|error| *error))
            }
            Command::Watch { .. } | Command::Unwatch(_) | Command::Notify(_) | Command::Readiness(_) => return,
        };
        self.answers.push(event);
    }

    fn fault_of_reads(&mut self) -> Option<String> {
        (self.failing_reads > 0).then(|| {
            self.failing_reads -= 1;
            "connection reset".to_owned()
        })
    }

    /// A dry run, the same as a write to a copy of the server.
    fn preview(&mut self, key: &Key, effect: &Effect) -> Result<Value, Box<WriteError>> {
        let fault = self.refusals.get(key).copied();
        if let Some(error) = fault.and_then(|fault| fault.of_write(key, effect, false)) {
            return Err(Box::new(error));
        }
        let before = self.server.clone();
        let outcome = self.perform_effect(key, effect);
        self.server = before;
        match outcome {
            Ok(stored) => Ok(stored.map(|stored| stored.whole(&key.kind.api_version())).unwrap_or_default()),
            Err(Failure::Conflict(_)) => Err(Box::new(WriteError::Stale(key.clone()))),
            Err(Failure::Refused(code, message)) => {
                Err(Box::new(WriteError::Refused { key: key.clone(), code, message }))
            }
        }
    }

    fn write(&mut self, write: Write) -> Result<Written, Box<WriteError>> {
        let key = write.key.clone();
        let verb = if key.name == api::STATE { "record" } else { print::verb(&write.effect) };
        let fault = match self.faults.get_mut(&key) {
            Some(faults) if !faults.is_empty() => faults.pop_front(),
            _ => self.refusals.get(&key).copied(),
        };
        let error = fault.and_then(|fault| fault.of_write(&key, &write.effect, write.backup.is_some()));
        if let Some(error) = error {
            self.line(&format!("{verb} {key}: {}", print::error(&error)));
            return Err(Box::new(error));
        }
        let result = self.perform(write);
        match (&result, self.made.last()) {
            (Err(error), _) => self.line(&format!("{verb} {key}: {}", print::error(error))),
            (Ok(_), Some(made)) if !made.has_moved() => self.line(&format!("{verb} {key}: no change")),
            (Ok(_), _) if fault == Some(Fault::Unanswered) => self.line(&format!("{verb} {key}: answer lost")),
            (Ok(_), _) => self.line(&format!("{verb} {key}")),
        }
        match fault {
            Some(Fault::Unanswered) => Err(Box::new(WriteError::Transient { key, message: "timeout".into() })),
            _ => result,
        }
    }

    fn perform(&mut self, write: Write) -> Result<Written, Box<WriteError>> {
        let mut copy = None;
        if let Some(backup) = &write.backup {
            let before = self.server.get(&write.key).map(|stored| stored.whole(&write.key.kind.api_version()));
            let Some(object) = before else {
                return Err(Box::new(WriteError::NoBackup { key: write.key.clone(), message: "it is gone".into() }));
            };
            self.back_up(&write.key, &object, &backup.namespace);
            copy = Some(object);
        }
        let before = self.server.get(&write.key).cloned();
        let outcome = self.perform_effect(&write.key, &write.effect);
        let after = self.server.get(&write.key).cloned();
        let made = Made { write, before, after };
        let rendered = if made.write.key.kind.kind == "MachineConfig" { self.rendered_now() } else { BTreeMap::new() };
        self.promises.check(&made, &rendered);
        let key = made.write.key.clone();
        self.made.push(made);
        match outcome {
            Ok(stored) => Ok(Written { live: stored.map(|stored| stored.live()), before: copy }),
            Err(Failure::Conflict(_)) => Err(Box::new(WriteError::Stale(key))),
            Err(Failure::Refused(code, message)) => Err(Box::new(WriteError::Refused { key, code, message })),
        }
    }

    /// Writes a backup into the slot that the hands would choose.
    fn back_up(&mut self, key: &Key, object: &Value, namespace: &str) {
        self.line(&format!("back up {key}"));
        let names = backup::names(key);
        let slot = |name: &String| Key {
            kind: Kind::new("v1", "ConfigMap"),
            namespace: namespace.to_owned(),
            name: name.clone(),
        };
        let existing = names.each_ref().map(|name| self.server.get(&slot(name)).map(|stored| stored.whole("v1")));
        let time = slots::time_of_next(&existing, self.now().wall);
        let Slot::Write { index, precondition } = slots::choose(&existing, object, time) else { return };
        let mut config_map = backup::config_map(object, namespace, &names[index], time).expect("it is small");
        precondition.stamp(&mut config_map);
        self.server.apply(FIELD_MANAGER, &slot(&names[index]), &config_map, true).expect("ConfigMaps are served");
    }

    fn perform_effect(&mut self, key: &Key, effect: &Effect) -> Outcome {
        let server = &mut self.server;
        match effect {
            Effect::Apply { object, force, .. } => server.apply(FIELD_MANAGER, key, &object.value(), *force),
            Effect::RepairLists { object, .. } => {
                let wanted = object.value();
                let Some(stored) = server.get(key) else {
                    return Err(Failure::Refused(404, format!("{key} not found")));
                };
                let live = stored.whole(&key.kind.api_version());
                if ["resourceVersion", "uid"].iter().any(|field| live["metadata"][field] != wanted["metadata"][field]) {
                    return Err(Failure::Conflict(format!("{key} has changed")));
                }
                let patch = list_repair::repair(&wanted, &live).unwrap_or_else(|| json!([]));
                server.update(FIELD_MANAGER, key, |object| patch_json(object, &patch))
            }
            Effect::JsonPatch { patch } => server.update(FIELD_MANAGER, key, |object| patch_json(object, patch)),
            Effect::Annotate { annotations, resource_version } => {
                let patch = json!({"metadata": {"resourceVersion": resource_version, "annotations": annotations}});
                server.update(FIELD_MANAGER, key, |object| merge(object, &patch))
            }
            Effect::HandBack { patch } => server.update(FIELD_MANAGER, key, |object| merge(object, patch)),
            Effect::Delete { uid, resource_version } => {
                server.delete(FIELD_MANAGER, key, Some((uid, resource_version)))
            }
            Effect::Create { object } => server.create(FIELD_MANAGER, key, object),
            Effect::Replace { .. } | Effect::ReplaceStatus { .. } => panic!("the autopilot does not {effect:?}"),
        }
    }
}

/// The part of RFC 6902 that the core uses.
fn patch_json(object: &mut Value, patch: &Value) {
    for operation in patch.as_array().into_iter().flatten() {
        let path = operation["path"].as_str().expect("it has a path");
        let (parent, last) = path.rsplit_once('/').expect("it is below the object");
        let last = last.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("{path} has no place"));
        match (operation["op"].as_str(), parent) {
            (Some("replace"), _) => *object.pointer_mut(path).expect(path) = operation["value"].clone(),
            (Some("add"), Value::Object(fields)) => _ = fields.insert(last, operation["value"].clone()),
            (Some("remove"), Value::Array(items)) => _ = items.remove(last.parse().expect(path)),
            _ => panic!("{operation} is not used"),
        }
    }
}

//! Tells of the profiles: an object with the action Ignore for each that is advertised, once. What a person deletes stays deleted.

use super::observing::requests;
use super::settling::key as request_key;
use super::{Core, Timer};
use crate::notice::Notice;
use catalog::profile::Profile;
use change::{Effect, Key, Kind, Live, Precondition};
use protocol::{Command, Write, WriteError, Written};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const FIELD: &str = "advertised";
const AGAIN: Duration = Duration::from_secs(30);

/// How far that is.
#[derive(Debug, Default)]
pub(super) struct Advertising {
    /// The profiles that were advertised before; unknown until the state is read.
    told: Option<BTreeSet<String>>,
    is_reading: bool,
    /// Objects on their way to the server.
    creating: BTreeSet<String>,
    /// Whether the state has to be written, and whether that is on its way.
    is_unsaved: bool,
    is_saving: bool,
}

impl Core {
    fn state_key(&self) -> Key {
        Key {
            kind: Kind::new("v1", "ConfigMap"),
            namespace: self.config.namespace.clone(),
            name: api::advisor::STATE.to_owned(),
        }
    }

    /// Reads which profiles were advertised before.
    pub(super) fn read_advertised(&mut self) {
        let key = self.state_key();
        let Some(served) = self.discovery.kinds.find(&key.kind) else { return };
        if self.advertising.told.is_none() && !self.advertising.is_reading {
            self.advertising.is_reading = true;
            *self.asked.entry(key.clone()).or_default() += 1;
            self.commands.push(Command::Inspect { key, served });
        }
    }

    /// Takes the state, if it is that.
    pub(super) fn advertised_read(&mut self, key: &Key, found: &Result<Option<(Live, Value)>, String>) {
        if !self.advertising.is_reading || *key != self.state_key() {
            return;
        }
        self.advertising.is_reading = false;
        match found {
            Ok(found) => {
                let text = found.as_ref().and_then(|(_, state)| state["data"][FIELD].as_str()).unwrap_or_default();
                self.advertising.told =
                    Some(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect());
                self.advertise();
            }
            Err(why) => {
                let why = format!("it could not be read, so no profile is advertised: {why}");
                self.notify(Notice::PublishFailed { key: key.clone(), why });
                self.timers.set(Timer::Advertise, self.now.monotonic.after(AGAIN));
            }
        }
    }

    /// Creates what is to be told of and was not yet.
    pub(super) fn advertise(&mut self) {
        let Some(told) = &self.advertising.told else { return };
        let Some(served) = self.watches.served(&requests()).filter(|_| self.watches.is_listed(&requests())) else {
            return;
        };
        let profiles = self.catalog.profiles.iter();
        let new: Vec<Profile> = profiles
            .filter(|profile| profile.is_advertised && !told.contains(&profile.name))
            .filter(|profile| !self.advertising.creating.contains(&profile.name))
            .cloned()
            .collect();
        for profile in new {
            if self.profiles.contains_key(&profile.name) {
                self.told(&profile.name);
                continue;
            }
            self.advertising.creating.insert(profile.name.clone());
            let (key, effect) = (request_key(&profile.name), Effect::Create { object: advertisement(&profile) });
            let served = served.clone();
            self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt: 0, backup: None })));
        }
        self.save_advertised();
    }

    fn told(&mut self, name: &str) {
        if let Some(told) = &mut self.advertising.told {
            self.advertising.is_unsaved |= told.insert(name.to_owned());
        }
    }

    fn save_advertised(&mut self) {
        let key = self.state_key();
        let Some(served) = self.discovery.kinds.find(&key.kind) else { return };
        let Advertising { told: Some(told), is_unsaved: true, is_saving: false, creating, .. } = &self.advertising
        else {
            return;
        };
        if !creating.is_empty() {
            return;
        }
        let names: Vec<&str> = told.iter().map(String::as_str).collect();
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "data": {FIELD: names.join(",")},
        });
        (self.advertising.is_unsaved, self.advertising.is_saving) = (false, true);
        let effect = Effect::apply(object, Precondition::None, true);
        self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt: 0, backup: None })));
    }

    /// Whether the object of a profile is being created.
    pub(super) fn is_creating(&self, name: &str) -> bool {
        self.advertising.creating.contains(name)
    }

    /// Takes the answer to a write, if it is one of these.
    pub(super) fn advertised_written(&mut self, key: &Key, result: &Result<Written, WriteError>) -> bool {
        let is_state = self.advertising.is_saving && *key == self.state_key();
        if is_state {
            self.advertising.is_saving = false;
        } else if !(key.kind == super::kind() && self.advertising.creating.remove(&key.name)) {
            return false;
        }
        if !is_state {
            self.due.insert(key.name.clone());
        }
        match result {
            Ok(_) if is_state => {}
            Ok(_) => self.told(&key.name),
            Err(error) => {
                self.advertising.is_unsaved |= is_state;
                self.notify(Notice::PublishFailed { key: key.clone(), why: error.to_string() });
                self.timers.set(Timer::Advertise, self.now.monotonic.after(AGAIN));
                if is_state {
                    return true;
                }
            }
        }
        // Also if one could not be created: the others are not to come back once they are deleted.
        self.save_advertised();
        true
    }
}

/// The object that tells of a profile.
fn advertisement(profile: &Profile) -> Value {
    let key = request_key(&profile.name);
    json!({
        "apiVersion": key.kind.api_version(),
        "kind": key.kind.kind,
        "metadata": {
            "name": profile.name,
            "labels": {"advisor.kubevirt.io/category": profile.category},
            "annotations": {
                "advisor.kubevirt.io/description": profile.description,
                "advisor.kubevirt.io/impact-summary": profile.impact_summary,
                api::advisor::AUTO_CREATED: "true",
            },
        },
        "spec": {"profile": profile.name, "action": "Ignore"},
    })
}

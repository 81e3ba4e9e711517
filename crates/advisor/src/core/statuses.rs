//! The health of applied objects, from their own status: the watch of metadata reports a change, and then the object is read.

use super::comparing::{Found, Work};
use super::{Core, Timer};
use crate::health;
use api::advisor::Operation;
use change::{Key, Live, Moment};
use protocol::{Command, WatchTarget};
use serde_json::Value;
use std::time::Duration;

/// The status of one object is not read more often than this, however often it changes.
const PAUSE: Duration = Duration::from_secs(10);

/// What is known of the status of an object since it was compared.
#[derive(Debug, Default)]
pub(super) struct StatusRead {
    /// The version in which it was read last.
    version: Option<u128>,
    /// Whether a read is on its way.
    is_asking: bool,
    /// Not before this it is read again.
    not_before: Option<Moment>,
}

impl Work {
    /// Whether its health is read from the status of its object: that is as it should be, and does not configure nodes, whose health is that of
    /// their pools.
    pub(super) fn reads_status(&self) -> bool {
        let is_kept = |found: &Found| match found {
            Found::Compared(found) => found.operation == Operation::Keep && !found.is_removal && !found.is_skipped,
            Found::NotOurs(_) => false,
        };
        !health::is_of_nodes(&self.key) && self.found.as_ref().is_some_and(is_kept)
    }
}

impl Core {
    /// Reads an object again if its status may have changed since it was read.
    pub(super) fn follow_status(&mut self, profile: &str, item: &str) {
        let Some(work) = self.profiles.get_mut(profile).and_then(|managed| managed.work.get_mut(item)) else { return };
        let read = work.version.max(work.status.version);
        let is_news = self.targets.get(&work.key).is_some_and(|seen| seen.version > read);
        // The profile is reconciled when the answer arrives.
        let is_asked = work.status.is_asking || self.asked.contains_key(&work.key);
        if !is_news || is_asked || !work.reads_status() {
            return;
        }
        let now = self.now.monotonic;
        if let Some(at) = work.status.not_before.filter(|at| now < *at) {
            return self.timers.set(Timer::Status(profile.to_owned()), at);
        }
        let Some(served) = self.watches.served(&WatchTarget::of(&work.key)) else { return };
        (work.status.is_asking, work.status.not_before) = (true, Some(now.after(PAUSE)));
        let key = work.key.clone();
        *self.asked.entry(key.clone()).or_default() += 1;
        self.commands.push(Command::Inspect { key, served });
    }

    /// Takes an object that was read for its status. One that could not be read, or does not exist, is read again after a pause, unless its watch
    /// reports that it is gone.
    pub(super) fn status_read(&mut self, key: &Key, found: &Result<Option<(Live, Value)>, String>) {
        let works = self.profiles.values_mut().flat_map(|managed| managed.work.values_mut());
        for work in works.filter(|work| work.key == *key && work.status.is_asking) {
            work.status.is_asking = false;
            if let (Ok(Some((live, object))), Some(Found::Compared(compared))) = (found, &mut work.found) {
                compared.health = health::of_object(object, work.reports);
                work.status.version = live.version();
            }
        }
    }
}

//! What became of writes.

use super::settling::key as request_key;
use super::{Core, kind};
use crate::notice::Notice;
use crate::plan::Outcome;
use crate::situation::Memory;
use change::Key;
use protocol::{WriteError, Written};

impl Core {
    /// Takes the answer to a write.
    pub(super) fn written(&mut self, key: &Key, result: Result<Written, WriteError>) {
        if self.advertised_written(key, &result) {
            return;
        }
        if key.kind == kind() {
            return self.published(&key.name.clone(), result);
        }
        let is_of = |managed: &super::managed::Managed| managed.writing.as_ref().is_some_and(|(_, of)| of == key);
        let Some(name) = self.profiles.iter().find(|(_, managed)| is_of(managed)).map(|(name, _)| name.clone()) else {
            return;
        };
        let Some(managed) = self.profiles.get_mut(&name) else { return };
        let Some((item, _)) = managed.writing.take() else { return };
        if let Some(work) = managed.work.get_mut(&item) {
            work.restart();
        }
        let uid = managed.uid.clone();
        let items = managed.plan.iter().flat_map(|plan| &plan.items);
        let is_deleted = items.filter(|of| of.name == item).any(|of| of.compared.deletes());
        let notice = match &result {
            Ok(_) => {
                (managed.failures, managed.retry_at) = (0, None);
                managed.outcomes.insert(item.clone(), Outcome::Written);
                managed.announced.insert(item.clone());
                Some(Notice::Applied { name: name.clone(), uid, item, key: key.clone(), is_deleted })
            }
            // It is compared again, and then it turns out whether it is still what was approved.
            Err(WriteError::Stale(_)) => None,
            Err(error) => {
                managed.failures = managed.failures.saturating_add(1);
                let is_final = !matches!(error, WriteError::Transient { .. }) || managed.failures > 3;
                let why = error.to_string();
                if is_final {
                    managed.outcomes.insert(item.clone(), Outcome::Failed(why.clone()));
                }
                Some(Notice::ApplyFailed { name: name.clone(), uid, item, why })
            }
        };
        // The next comparison is about what was written, whether its watch has reported it or not.
        match &result {
            Ok(Written { live: Some(live), .. }) => {
                self.targets.observe(key, live, None);
            }
            Ok(Written { live: None, .. }) => {
                self.targets.observe_absent(key);
            }
            Err(_) => {}
        }
        if matches!(result, Err(WriteError::Transient { .. })) {
            self.try_again(&name);
        }
        if let Some(notice) = notice {
            self.notify(notice);
        }
        self.due.insert(name);
    }

    /// Takes the answer to a status.
    fn published(&mut self, name: &str, result: Result<Written, WriteError>) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let Some(status) = managed.publishing.take() else { return };
        match result {
            Ok(written) => {
                managed.memory = Memory::of(&status);
                (managed.unanswered, managed.publish_failures, managed.publish_at) = (None, 0, None);
                let version = written.live.as_ref().and_then(change::Live::version);
                // The watch may have reported what somebody has written since.
                if version >= managed.version {
                    (managed.published, managed.version) = (*status, version);
                }
                self.due.insert(name.to_owned());
            }
            Err(error) => {
                managed.unanswered = Some(status);
                let key = request_key(name);
                self.notify(Notice::PublishFailed { key, why: error.to_string() });
                self.publish_again(name);
            }
        }
    }
}

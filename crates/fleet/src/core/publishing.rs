//! Notices about jobs, and the published queue.

use super::{Core, Due};
use crate::jobs::Dispatch;
use crate::jobs::chronicle::Chronicle;
use crate::jobs::exchange::{Decision, Objects};
use crate::jobs::figures::Beside;
use crate::jobs::published::Operator;
use change::Key;
use protocol::{Command, WriteError, Written};

impl Core {
    /// Publishes the queue of jobs in the namespace of the fleet, as this operator.
    #[must_use]
    pub fn publishing(mut self, home: String, operator: Operator) -> Core {
        self.ci.publisher = Some((home, operator));
        self
    }

    /// Reports what has become of jobs since the last decision.
    pub(super) fn chronicle(&mut self, api: &str, dispatch: &Dispatch, objects: Objects<'_>, decision: &Decision) {
        let (beside, now) = (self.beside_jobs(), self.now);
        let Some((_, operator)) = &self.ci.publisher else { return };
        let told = self.ci.chronicle.take((operator, api), dispatch, objects, decision, &beside, now);
        let forges = &self.ci.forges;
        let notices = told.notices(|scope| {
            let mut of_scope = forges.iter().filter(|(_, forge)| {
                forge.settings.as_ref().is_ok_and(|found| found.address.api == api && found.scope == *scope)
            });
            of_scope.next().map(|(pool, forge)| (pool.clone(), forge.uid().to_owned()))
        });
        self.commands.extend(notices.into_iter().map(Command::Notify));
    }

    /// What else keeps jobs waiting.
    fn beside_jobs(&self) -> Beside {
        let mut beside = Beside::default();
        for (pool, forge) in &self.ci.forges {
            let (is_connected, reason, message) = forge.condition();
            // A check that was not answered yet is no trouble.
            if !is_connected && reason != "Connecting" {
                beside.troubles.insert(pool.clone(), message);
            }
            if let Some(tended) = self.ci.versions.get(pool) {
                if let Some(trouble) = tended.upkeep.trouble() {
                    beside.troubles.entry(pool.clone()).or_insert(trouble);
                }
                beside.versions.insert(pool.clone(), tended.upkeep.shown());
            }
            let expects = forge.settings.as_ref().is_ok_and(|settings| !settings.github.webhook_secrets.is_empty());
            beside.webhooks_expected += usize::from(expects);
        }
        beside
    }

    /// Writes the queue, if that is due.
    pub(super) fn publish_queue(&mut self) {
        let Some((home, _)) = &self.ci.publisher else { return };
        let write = self.ci.chronicle.write(home, self.now);
        self.commands.extend(write.map(|write| Command::Write(Box::new(write))));
    }

    /// Takes the answer to that write; false if it is one to another write.
    pub(super) fn queue_written(&mut self, key: &Key, result: &Result<Written, WriteError>) -> bool {
        if !Chronicle::is_mine(key) {
            return false;
        }
        if let Some(notice) = self.ci.chronicle.answered(result, self.now.monotonic) {
            self.notify(notice);
        }
        self.due.insert(Due::Jobs);
        true
    }
}

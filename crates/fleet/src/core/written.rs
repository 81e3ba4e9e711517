//! What became of writes.

use super::entry::{Entry, name_of};
use super::{Core, Due};
use crate::notice::Notice;
use change::{Key, Moment};
use protocol::{WriteError, Written};
use serde::Serialize;

fn end<S, T: Serialize + Clone + PartialEq>(
    entry: Option<&mut Entry<S, T>>,
    result: &Result<Written, WriteError>,
    now: Moment,
) -> Option<(Result<(), String>, Option<Moment>)> {
    let entry = entry?;
    let ended = entry.written(result, now);
    Some((ended, entry.blocked_until))
}

impl Core {
    /// Takes the answer to a write.
    pub(super) fn written(&mut self, key: &Key, result: &Result<Written, WriteError>) {
        if self.queue_written(key, result) {
            return;
        }
        let (name, now) = (name_of(key), self.now.monotonic);
        let (ended, due) = match key.kind.kind.as_str() {
            "MachineClaim" => {
                self.slots.release(&name);
                if self.claim_created(&name, result) {
                    return;
                }
                let ended = end(self.claims.get_mut(&name).map(|managed| &mut managed.entry), result, now);
                self.enroll(&name);
                self.claim_changed(&name);
                (ended, Due::Claim(name))
            }
            "HypervisorCluster" => {
                (end(self.clusters.get_mut(&name).map(|found| &mut found.entry), result, now), Due::Cluster(name))
            }
            "HypervisorMachineTemplate" => {
                (end(self.templates.get_mut(&name).map(|found| &mut found.entry), result, now), Due::Template(name))
            }
            "RunnerPool" => {
                (end(self.pools.get_mut(&name).map(|found| &mut found.entry), result, now), Due::Pool(name))
            }
            _ => return,
        };
        let Some((ended, blocked_until)) = ended else { return };
        if let Err(why) = ended {
            self.notify(Notice::WriteFailed { key: key.clone(), why });
        }
        match blocked_until {
            Some(until) => self.wake(due, until),
            None => {
                self.due.insert(due);
            }
        }
    }
}

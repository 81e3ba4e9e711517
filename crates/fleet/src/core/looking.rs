//! Machines that the hypervisor has halted, for example because a disk could not be written: lists show them as running, so that a few are looked at with each
//! list, in turn.

use super::Core;
use super::asking::What;
use super::claims::Managed;
use super::clusters::Hypervisor;
use crate::hypervisor::{Operation, Power};
use crate::machine::{self, Halted, Sight};
use crate::object::Name;
use std::ops::Bound::{Excluded, Unbounded};

/// So many machines are looked at with each list, beside those that were halted when they were looked at last.
const WITH_EACH_LIST: usize = 2;

impl Core {
    /// Looks at the next machines that run.
    pub(super) fn look_around(&mut self, cluster: &Name) {
        let Some(hypervisor) = self.clusters.get(cluster).filter(|found| !found.is_moved()) else { return };
        let Hypervisor { members, looked, halted, .. } = hypervisor;
        let runs = |managed: &Managed| {
            matches!(managed.sight, Sight::Ours { power: Power::Running, .. })
                && managed.operation.is_none()
                && managed.entry.object.deleting.is_none()
        };
        let is_wanted =
            |name: &&Name| self.claims.get(*name).is_some_and(|managed| runs(managed)) && !halted.contains(*name);
        let start = looked.clone().map_or(Unbounded, Excluded);
        let after = members.range((start, Unbounded)).filter(is_wanted).take(WITH_EACH_LIST);
        let mut next: Vec<Name> = after.cloned().collect();
        let first = members.iter().filter(is_wanted).take(WITH_EACH_LIST - next.len());
        next.extend(first.filter(|name| !next.contains(name)).cloned().collect::<Vec<_>>());
        let last = next.last().cloned();
        next.extend(halted.iter().filter(|name| self.claims.get(*name).is_some_and(|managed| runs(managed))).cloned());
        if let Some(hypervisor) = self.clusters.get_mut(cluster) {
            hypervisor.looked = last;
        }
        for claim in next {
            let Some(object) = self.claims.get(&claim).map(|managed| &managed.entry.object) else { continue };
            let Some(target) = machine::target(object, &self.config.operator) else { continue };
            let uid = object.uid.clone();
            self.ask(cluster, Operation::Look(target), What::Look { claim, uid });
        }
    }

    /// Takes what a look has shown.
    pub(super) fn looked(&mut self, cluster: &Name, claim: &Name, uid: &str, state: Option<String>) {
        let now = self.now.monotonic;
        let Some(managed) = self.claims.get_mut(claim).filter(|managed| managed.entry.object.uid == uid) else {
            return;
        };
        let since = managed.halted.as_ref().map_or(now, |halted| halted.since);
        let was_halted = managed.halted.is_some();
        managed.halted = state.map(|state| Box::new(Halted { state, since, seen: now }));
        let is_halted = managed.halted.is_some();
        if let Some(hypervisor) = self.clusters.get_mut(cluster) {
            match is_halted {
                true => hypervisor.halted.insert(claim.clone()),
                false => hypervisor.halted.remove(claim),
            };
        }
        if was_halted || is_halted {
            self.claim_changed(claim);
        }
    }
}

//! Images of seeds that no machine needs any more: those of machines that somebody has deleted by hand.

use super::asking::What;
use super::{Core, Timer};
use crate::cloud_init;
use crate::hypervisor::{Operation, SeedSearch, SeedsFound};
use crate::notice::Notice;
use crate::object::Name;
use crate::orphans::unneeded_seeds;
use api::fleet::OrphanPolicy;
use std::time::Duration;

/// After a start or another spec, when machines were listed and inspected.
pub(super) const FIRST: Duration = Duration::from_secs(120);
/// An image is small, and harms nobody.
const EVERY: Duration = Duration::from_secs(30 * 60);

impl Core {
    /// Looks for images on the storages that templates of a hypervisor name.
    pub(super) fn list_seeds(&mut self, name: &Name) {
        let Some(hypervisor) = self.clusters.get(name) else { return };
        let is_possible = hypervisor.is_ready && !hypervisor.is_moved();
        let of_it = self.templates.values().filter(|managed| managed.cluster() == *name);
        let storages = of_it.filter_map(|managed| cloud_init::storage(&managed.entry.object.spec)).collect();
        let search = SeedSearch { operator: self.config.operator.clone(), storages };
        self.timers.set(Timer::Seeds(name.clone()), self.now.monotonic.after(EVERY));
        if is_possible && !search.storages.is_empty() {
            self.ask(name, Operation::ListSeeds(search), What::Seeds);
        }
    }

    /// Takes which images there are; deletes those that were of no claim and of no machine this time and the last time.
    pub(super) fn seeds_listed(&mut self, name: &Name, found: SeedsFound) {
        for message in found.unread {
            self.notify(Notice::SeedTrouble { cluster: name.clone(), message });
        }
        let are_claims_known = self.watches.is_listed(&super::observing::target(super::claims::KIND));
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        if !are_claims_known || !hypervisor.is_swept || hypervisor.is_surveying() {
            return;
        }
        let is_needed = |uid: &str| {
            let is_of_machine = |owner: &crate::hypervisor::Owner| owner.uid == uid;
            self.uids.contains_key(uid)
                || self.unreadable.values().any(|unreadable| unreadable == uid)
                || hypervisor.surveyed.values().any(|(_, owner)| owner.as_ref().is_some_and(is_of_machine))
        };
        let unneeded = unneeded_seeds(&found.images, &mut hypervisor.seed_marks, is_needed);
        let is_deleted = hypervisor.entry.object.spec.orphans.policy == OrphanPolicy::Delete;
        for image in unneeded {
            let (cluster, volume, uid) = (name.clone(), image.volume.clone(), image.uid.clone());
            self.notify(Notice::Seed { cluster, volume, uid, is_deleted });
            if is_deleted {
                self.ask(name, Operation::DeleteSeed(image), What::DeleteSeed);
            }
        }
    }
}

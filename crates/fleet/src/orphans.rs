//! Machines that this installation made and that no claim refers to: marked when they are seen, destroyed when they are seen again after a
//! grace period.

use crate::hypervisor::{MachineId, Owner, SeedImage};
use change::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What claims say about a machine with a record of this installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// Its claim exists and refers to it, or may still come to refer to it.
    Yes,
    /// There is surely no claim with its uid, or that claim has another machine.
    No,
    /// Not all claims are known now.
    Unknown,
}

/// The marks of one hypervisor.
#[derive(Debug, Clone, Default)]
pub struct Marks(BTreeMap<MachineId, (Owner, Moment)>);

impl Marks {
    /// Takes that a machine was seen with this owner; whether it is an orphan for longer than the grace period, so that it may be
    /// destroyed. Another owner begins anew.
    pub fn see(&mut self, id: &MachineId, owner: &Owner, claimed: Claimed, grace: Duration, now: Moment) -> bool {
        match claimed {
            Claimed::Yes => {
                self.0.remove(id);
                false
            }
            Claimed::Unknown => false,
            Claimed::No => match self.0.get(id) {
                Some((known, since)) if known == owner => since.after(grace) <= now,
                _ => {
                    self.0.insert(id.clone(), (owner.clone(), now));
                    false
                }
            },
        }
    }

    /// Forgets what is not there any more.
    pub fn retain(&mut self, exists: impl Fn(&MachineId) -> bool) {
        self.0.retain(|id, _| exists(id));
    }

    /// Forgets one machine.
    pub fn remove(&mut self, id: &MachineId) {
        self.0.remove(id);
    }

    /// The marked machines with their owners.
    pub fn all(&self) -> impl Iterator<Item = (&MachineId, &Owner)> {
        self.0.iter().map(|(id, (owner, _))| (id, owner))
    }
}

/// The images that nobody needs now and nobody needed when they were listed last; `marks` remembers the volumes from one list to the next.
pub fn unneeded_seeds(
    found: &[SeedImage],
    marks: &mut BTreeSet<String>,
    is_needed: impl Fn(&str) -> bool,
) -> Vec<SeedImage> {
    let unneeded: Vec<&SeedImage> = found.iter().filter(|image| !is_needed(&image.uid)).collect();
    let before = std::mem::replace(marks, unneeded.iter().map(|image| image.volume.clone()).collect());
    unneeded.into_iter().filter(|image| before.contains(&image.volume)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{Claimed, Marks, unneeded_seeds};
    use crate::hypervisor::{MachineId, Owner, SeedImage};
    use change::Moment;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn an_image_is_deleted_when_it_was_of_nobody_twice() {
        let image = |uid: &str| SeedImage {
            node: "a".into(),
            volume: format!("local:iso/{uid}"),
            operator: "o".into(),
            uid: uid.into(),
        };
        let (found, mut marks) = ([image("lost"), image("used")], BTreeSet::new());
        assert_eq!(unneeded_seeds(&found, &mut marks, |uid| uid == "used"), []);
        assert_eq!(unneeded_seeds(&found, &mut marks, |_| true), [], "it is needed meanwhile");
        assert_eq!(unneeded_seeds(&found, &mut marks, |uid| uid == "used"), [], "which begins anew");
        assert_eq!(unneeded_seeds(&found, &mut marks, |uid| uid == "used"), [image("lost")]);
        assert_eq!(unneeded_seeds(&found[1..], &mut marks, |uid| uid == "used"), []);
        assert!(marks.is_empty());
    }

    #[test]
    fn a_machine_is_destroyed_only_after_it_was_seen_twice_over_the_grace_period_with_one_owner() {
        let (mut marks, id, grace) = (Marks::default(), MachineId("1".into()), Duration::from_secs(60));
        let at = |second: u64| Moment::since_start(Duration::from_secs(second));
        let owner = |uid: &str| Owner { operator: "o".into(), claim: "n/x".into(), uid: uid.into() };
        assert!(!marks.see(&id, &owner("a"), Claimed::No, grace, at(0)));
        assert!(!marks.see(&id, &owner("a"), Claimed::No, grace, at(59)));
        assert!(!marks.see(&id, &owner("a"), Claimed::Unknown, grace, at(70)), "an API that fails says nothing");
        assert!(marks.see(&id, &owner("a"), Claimed::No, grace, at(70)));
        assert!(!marks.see(&id, &owner("b"), Claimed::No, grace, at(80)), "the id was used again");
        assert!(!marks.see(&id, &owner("b"), Claimed::Yes, grace, at(200)));
        assert!(!marks.see(&id, &owner("b"), Claimed::No, grace, at(300)), "a claim refers to it meanwhile");
        marks.retain(|_| false);
        assert_eq!(marks.all().count(), 0);
    }
}

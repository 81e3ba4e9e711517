//! What machines take of the nodes and storages of a hypervisor: each is counted once, from the moment it is promised a place until its end.

use crate::hypervisor::{Listed, Power, Seen};
use crate::object::Name;
use crate::placement::{self, Promised, Space};
use std::collections::BTreeMap;

/// What is promised, and what of it to which claim.
#[derive(Debug, Default)]
pub(super) struct Loads {
    total: Promised,
    held: BTreeMap<Name, Held>,
}

/// What one claim takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    node: String,
    cpus: u32,
    memory: u64,
    /// Whether the machine does not run yet, so that its node does not show its memory as used.
    is_coming: bool,
    /// The space of its disk, as long as its storage does not show that as used.
    space: Option<Box<Space>>,
}

/// What a list shows of a machine of a claim.
pub(super) struct Shown<'a> {
    pub(super) seen: &'a Seen,
    /// Whether its disk was complete for so long that the list counts it as used.
    pub(super) is_written: bool,
}

impl Held {
    fn of(seen: &Seen, space: Option<Box<Space>>) -> Held {
        let is_coming = seen.power == Power::Stopped;
        Held { node: seen.node.to_string(), cpus: seen.cpus, memory: seen.memory, is_coming, space }
    }
}

impl Loads {
    /// What is promised of nodes and storages.
    pub(super) fn promised(&self) -> &Promised {
        &self.total
    }

    /// Takes a list, with the machine of every claim as the list shows it. One that is not there, or that does not run yet, takes what it was promised.
    pub(super) fn list<'a>(
        &mut self,
        listed: &Listed,
        machines: impl IntoIterator<Item = (&'a Name, Option<Shown<'a>>)>,
    ) {
        self.total = Promised { nodes: placement::loads(listed), ..Promised::default() };
        let mut before = std::mem::take(&mut self.held);
        for (claim, shown) in machines {
            let held = before.remove(claim);
            match shown {
                Some(Shown { seen, is_written }) => {
                    // Machines and storages are listed together: with a machine that runs, its disk is counted.
                    let is_over = is_written || (seen.power == Power::Running && seen.lock.is_none());
                    let space = held.and_then(|held| held.space).filter(|_| !is_over);
                    self.hold(claim, seen, space);
                }
                None => {
                    if let Some(held) = held {
                        self.add(claim, Held { is_coming: true, ..held });
                    }
                }
            }
        }
    }

    /// Whether a claim takes something.
    pub(super) fn has(&self, claim: &Name) -> bool {
        self.held.contains_key(claim)
    }

    /// Promises a claim a place, instead of what it had before.
    pub(super) fn promise(&mut self, claim: &Name, node: &str, (cpus, memory): (u32, u64), space: Option<Space>) {
        self.withdraw(claim);
        let space = space.map(Box::new);
        self.add(claim, Held { node: node.to_owned(), cpus, memory, is_coming: true, space });
    }

    /// Promises a claim with a place the space for its disk, unless it has a promise of space already.
    pub(super) fn promise_space(&mut self, claim: &Name, space: Option<Space>) {
        let Some(held) = self.held.get_mut(claim).filter(|held| held.space.is_none()) else { return };
        if let Some(space) = space {
            self.total.add_space(&space);
            held.space = Some(Box::new(space));
        }
    }

    /// Takes a claim for the owner of a machine that is in the last list.
    pub(super) fn adopt(&mut self, claim: &Name, seen: &Seen) {
        self.withdraw(claim);
        self.hold(claim, seen, None);
    }

    /// A claim takes nothing any more; what it took.
    pub(super) fn withdraw(&mut self, claim: &Name) -> Option<Held> {
        let held = self.held.remove(claim)?;
        if let Some(load) = self.total.nodes.get_mut(&held.node) {
            match held.is_coming {
                true => load.retract(held.cpus, held.memory),
                false => load.remove(held.cpus, held.memory),
            }
        }
        if let Some(space) = &held.space {
            self.total.remove_space(space);
        }
        Some(held)
    }

    /// Gives back what was withdrawn.
    pub(super) fn restore(&mut self, claim: &Name, held: Option<Held>) {
        if let Some(held) = held {
            self.add(claim, held);
        }
    }

    /// The machine of a claim, which counts for its node already if the list counts it.
    fn hold(&mut self, claim: &Name, seen: &Seen, space: Option<Box<Space>>) {
        let held = Held::of(seen, space);
        if !placement::counts(seen) {
            return self.add(claim, held);
        }
        if let Some(space) = &held.space {
            self.total.add_space(space);
        }
        self.held.insert(claim.clone(), held);
    }

    fn add(&mut self, claim: &Name, held: Held) {
        let load = self.total.nodes.entry(held.node.clone()).or_default();
        match held.is_coming {
            true => load.promise(held.cpus, held.memory),
            false => load.add(held.cpus, held.memory),
        }
        if let Some(space) = &held.space {
            self.total.add_space(space);
        }
        self.held.insert(claim.clone(), held);
    }
}

#[cfg(test)]
impl super::Core {
    /// How many timers are set.
    pub(crate) fn timers(&self) -> usize {
        self.timers.count()
    }

    /// The CPUs that all machines of all hypervisors take.
    pub(crate) fn cpus_taken(&self) -> u32 {
        self.clusters.values().flat_map(|found| found.loads.total.nodes.values()).map(|load| load.cpus).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Loads, Shown};
    use crate::hypervisor::{Listed, MachineId, Power, Seen};
    use crate::object::Name;
    use crate::placement::{Space, StorageId};

    fn claim(name: &str) -> Name {
        Name::new("ci", name)
    }

    fn seen(node: &str, power: Power, lock: Option<&str>) -> Seen {
        Seen {
            name: "one".into(),
            node: node.into(),
            power,
            is_template: false,
            lock: lock.map(Into::into),
            is_tagged: false,
            pool: None,
            cpus: 2,
            memory: 10,
        }
    }

    /// CPUs, memory, and memory that is still to come.
    fn on(loads: &Loads, node: &str) -> (u32, u64, u64) {
        let load = loads.promised().nodes.get(node).copied().unwrap_or_default();
        (load.cpus, load.memory, load.coming)
    }

    #[test]
    fn a_machine_is_counted_once_from_its_promise_to_its_end() {
        let (mut loads, one) = (Loads::default(), claim("one"));
        loads.promise(&one, "a", (2, 10), None);
        loads.promise(&one, "a", (2, 10), None);
        assert_eq!(on(&loads, "a"), (2, 10, 10), "a second promise replaces the first");
        loads.promise(&one, "b", (2, 10), None);
        assert_eq!((on(&loads, "a"), on(&loads, "b")), ((0, 0, 0), (2, 10, 10)));
        for (machine, expected) in [
            (None, (2, 10, 10)),
            (Some(seen("b", Power::Stopped, Some("clone"))), (2, 10, 10)),
            (Some(seen("b", Power::Stopped, None)), (2, 10, 10)),
            (Some(seen("b", Power::Running, None)), (2, 10, 0)),
            (Some(seen("b", Power::Unknown, None)), (2, 10, 0)),
        ] {
            let mut listed = Listed::default();
            if let Some(seen) = &machine {
                listed.machines.insert(MachineId("200".into()), seen.clone());
            }
            let shown = machine.as_ref().map(|seen| Shown { seen, is_written: false });
            loads.list(&listed, [(&one, shown)]);
            assert_eq!(on(&loads, "b"), expected, "{machine:?}");
        }
        loads.withdraw(&one);
        loads.withdraw(&one);
        assert_eq!(on(&loads, "b"), (0, 0, 0));
    }

    #[test]
    fn a_machine_that_others_have_is_not_taken_off_with_a_claim() {
        let (mut loads, one) = (Loads::default(), claim("one"));
        let mut listed = Listed::default();
        listed.machines.insert(MachineId("200".into()), seen("a", Power::Running, None));
        loads.promise(&one, "a", (2, 10), None);
        // The machine with its id is somebody else's.
        loads.list(&listed, [(&one, None)]);
        assert_eq!(on(&loads, "a"), (4, 20, 10));
        let held = loads.withdraw(&one);
        assert_eq!(on(&loads, "a"), (2, 10, 0));
        loads.restore(&one, held);
        loads.adopt(&one, &seen("a", Power::Running, None));
        assert_eq!(on(&loads, "a"), (2, 10, 0), "an adopted machine is in the list already");
    }

    /// The space of a disk is promised until the storage shows it, and counts once then.
    #[test]
    fn space_is_promised_until_the_list_shows_the_disk() {
        let (mut loads, one) = (Loads::default(), claim("one"));
        let of = || StorageId::on("a", "local", false);
        let promised = |loads: &Loads| loads.promised().storages.get(&of()).copied().unwrap_or_default();
        let space = || Some(Space { of: of(), bytes: 7 });
        for (machine, is_written, expected) in [
            (None, false, 7),
            (Some(seen("a", Power::Stopped, Some("clone"))), false, 7),
            (Some(seen("a", Power::Running, Some("clone"))), false, 7),
            (Some(seen("a", Power::Stopped, None)), false, 7),
            (Some(seen("a", Power::Stopped, None)), true, 0),
            (Some(seen("a", Power::Running, None)), false, 0),
        ] {
            loads.promise(&one, "a", (2, 10), space());
            loads.promise_space(&one, space());
            let mut listed = Listed::default();
            if let Some(seen) = &machine {
                listed.machines.insert(MachineId("200".into()), seen.clone());
            }
            loads.list(&listed, [(&one, machine.as_ref().map(|seen| Shown { seen, is_written }))]);
            assert_eq!(promised(&loads), expected, "{machine:?} {is_written}");
            let held = loads.withdraw(&one);
            assert_eq!(promised(&loads), 0);
            loads.restore(&one, held);
            assert_eq!(promised(&loads), expected);
        }
        loads.adopt(&one, &seen("a", Power::Stopped, None));
        loads.promise_space(&one, space());
        assert_eq!(promised(&loads), 7, "a machine that is adopted may still be cloned");
        loads.withdraw(&one);
        loads.promise_space(&one, space());
        assert_eq!(promised(&loads), 0, "without a place there is no space");
    }
}

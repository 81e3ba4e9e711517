//! What machines take of the nodes of a hypervisor: each is counted once, from the moment it is promised a place until its end.

use crate::hypervisor::{Listed, Power, Seen};
use crate::object::Name;
use crate::placement::{self, Load};
use std::collections::BTreeMap;

/// The load of every node, and what of it is of which claim.
#[derive(Debug, Default)]
pub(super) struct Loads {
    total: BTreeMap<String, Load>,
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
}

impl Held {
    fn of(seen: &Seen) -> Held {
        let is_coming = seen.power == Power::Stopped;
        Held { node: seen.node.clone(), cpus: seen.cpus, memory: seen.memory, is_coming }
    }
}

impl Loads {
    /// The load of every node.
    pub(super) fn by_node(&self) -> &BTreeMap<String, Load> {
        &self.total
    }

    /// Takes a list, with the machine of every claim as the list shows it. One that is not there, or that does not run yet, takes what it was promised.
    pub(super) fn list<'a>(
        &mut self,
        listed: &Listed,
        machines: impl IntoIterator<Item = (&'a Name, Option<&'a Seen>)>,
    ) {
        self.total = placement::loads(listed);
        let before = std::mem::take(&mut self.held);
        for (claim, seen) in machines {
            match seen {
                Some(seen) if placement::counts(seen) => {
                    self.held.insert(claim.clone(), Held::of(seen));
                }
                Some(seen) => self.add(claim, Held::of(seen)),
                None => {
                    if let Some(held) = before.get(claim) {
                        self.add(claim, Held { is_coming: true, ..held.clone() });
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
    pub(super) fn promise(&mut self, claim: &Name, node: &str, cpus: u32, memory: u64) {
        self.withdraw(claim);
        self.add(claim, Held { node: node.to_owned(), cpus, memory, is_coming: true });
    }

    /// Takes a claim for the owner of a machine that is in the last list.
    pub(super) fn adopt(&mut self, claim: &Name, seen: &Seen) {
        self.withdraw(claim);
        match placement::counts(seen) {
            true => {
                self.held.insert(claim.clone(), Held::of(seen));
            }
            false => self.add(claim, Held::of(seen)),
        }
    }

    /// A claim takes nothing any more; what it took.
    pub(super) fn withdraw(&mut self, claim: &Name) -> Option<Held> {
        let held = self.held.remove(claim)?;
        if let Some(load) = self.total.get_mut(&held.node) {
            match held.is_coming {
                true => load.retract(held.cpus, held.memory),
                false => load.remove(held.cpus, held.memory),
            }
        }
        Some(held)
    }

    /// Gives back what was withdrawn.
    pub(super) fn restore(&mut self, claim: &Name, held: Option<Held>) {
        if let Some(held) = held {
            self.add(claim, held);
        }
    }

    fn add(&mut self, claim: &Name, held: Held) {
        let load = self.total.entry(held.node.clone()).or_default();
        match held.is_coming {
            true => load.promise(held.cpus, held.memory),
            false => load.add(held.cpus, held.memory),
        }
        self.held.insert(claim.clone(), held);
    }
}

#[cfg(test)]
impl super::Core {
    /// The CPUs that all machines of all hypervisors take.
    pub(crate) fn cpus_taken(&self) -> u32 {
        self.clusters.values().flat_map(|found| found.loads.total.values()).map(|load| load.cpus).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Loads;
    use crate::hypervisor::{Listed, MachineId, Power, Seen};
    use crate::object::Name;
    use std::collections::BTreeSet;

    fn claim(name: &str) -> Name {
        Name::new("ci", name)
    }

    fn seen(node: &str, power: Power, lock: Option<&str>) -> Seen {
        Seen {
            name: "one".into(),
            node: node.into(),
            power,
            is_template: false,
            lock: lock.map(str::to_owned),
            tags: BTreeSet::new(),
            pool: None,
            cpus: 2,
            memory: 10,
        }
    }

    /// CPUs, memory, and memory that is still to come.
    fn on(loads: &Loads, node: &str) -> (u32, u64, u64) {
        let load = loads.by_node().get(node).copied().unwrap_or_default();
        (load.cpus, load.memory, load.coming)
    }

    #[test]
    fn a_machine_is_counted_once_from_its_promise_to_its_end() {
        let (mut loads, one) = (Loads::default(), claim("one"));
        loads.promise(&one, "a", 2, 10);
        loads.promise(&one, "a", 2, 10);
        assert_eq!(on(&loads, "a"), (2, 10, 10), "a second promise replaces the first");
        loads.promise(&one, "b", 2, 10);
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
            loads.list(&listed, [(&one, machine.as_ref())]);
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
        loads.promise(&one, "a", 2, 10);
        // The machine with its id is somebody else's.
        loads.list(&listed, [(&one, None)]);
        assert_eq!(on(&loads, "a"), (4, 20, 10));
        let held = loads.withdraw(&one);
        assert_eq!(on(&loads, "a"), (2, 10, 0));
        loads.restore(&one, held);
        loads.adopt(&one, &seen("a", Power::Running, None));
        assert_eq!(on(&loads, "a"), (2, 10, 0), "an adopted machine is in the list already");
    }
}

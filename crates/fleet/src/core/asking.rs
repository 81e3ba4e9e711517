//! What is asked of hypervisors: one operation for each machine at a time, and not more clones at once than a storage can do.

use super::clusters::Hypervisor;
use super::node_slots::Holder;
use super::turns::Place;
use super::{Core, Due};
use crate::hypervisor::{self, MachineId, Operation, TemplateRef};
use crate::machine::Step;
use crate::object::Name;
use crate::outside::Request;
use change::Moment;
use protocol::Command;
use std::collections::BTreeMap;

/// A request without an answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) cluster: Name,
    /// The uid of the object of that name.
    pub(super) uid: String,
    pub(super) what: What,
    pub(super) sent: Moment,
    /// The clone that it is, as storage and node.
    pub(super) clone: Option<(String, String)>,
    /// The slot that it has, and on which node.
    pub(super) slot: Option<(Holder, String)>,
    /// The machine that it is about, and its node as far as that is known.
    pub(super) machine: Option<MachineId>,
    pub(super) node: Option<String>,
}

/// What was asked.
#[derive(Debug)]
pub(super) enum What {
    Check,
    List,
    LookUp(TemplateRef),
    /// A step of a claim with this uid.
    Claim {
        name: Name,
        uid: String,
        step: Step,
    },
    /// Whose a machine is that no claim refers to.
    Survey(MachineId),
    /// Whether the machine of a claim with this uid is halted.
    Look {
        claim: Name,
        uid: String,
    },
    /// The end of a machine that no claim refers to.
    Orphan(MachineId),
    /// Which images of seeds there are.
    Seeds,
    /// The end of an image that no machine needs.
    DeleteSeed,
}

impl What {
    /// In one word, for people.
    pub(super) fn word(&self) -> &'static str {
        match self {
            What::Check => "check",
            What::List => "list",
            What::LookUp(_) => "find-template",
            What::Survey(_) => "inspect",
            What::Look { .. } => "look",
            What::Orphan(_) => "destroy",
            What::Seeds => "list-seeds",
            What::DeleteSeed => "delete-seed",
            What::Claim { step, .. } => match step {
                Step::Inspect => "inspect",
                Step::Create => "create",
                Step::Configure => "configure",
                Step::Start => "start",
                Step::AskGuest => "addresses",
                Step::Deliver => "deliver",
                Step::RemoveSeed => "remove-seed",
                Step::Destroy => "destroy",
                Step::Wait | Step::AddFinalizer | Step::RemoveFinalizer | Step::Delete(_) => "none",
            },
        }
    }
}

impl What {
    /// Who needs a slot for it, if anybody does.
    fn holder(&self) -> Option<Holder> {
        match self {
            What::Claim { name, step, .. } if needs_slot(*step) => Some(Holder::Claim(name.clone())),
            What::Orphan(id) => Some(Holder::Orphan(id.clone())),
            _ => None,
        }
    }
}

/// Whether a step needs a slot of the hypervisor. A clone takes minutes, and has limits of its own; to look at a machine or to ask its guest is
/// quick, and must not wait for tasks that hang.
pub(super) fn needs_slot(step: Step) -> bool {
    matches!(step, Step::Configure | Step::Start | Step::RemoveSeed | Step::Destroy)
}

impl Core {
    /// Asks a hypervisor; the number of the request.
    pub(super) fn ask(&mut self, cluster: &Name, operation: Operation, what: What) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        let clone = match &operation {
            Operation::Create(blueprint) => {
                let template = &blueprint.template;
                let of = if template.is_shared { String::new() } else { format!("{}:", blueprint.node) };
                Some((format!("{of}{}", template.storage), blueprint.node.clone()))
            }
            _ => None,
        };
        let slot = what.holder().map(|holder| (holder, operation.node().unwrap_or_default().to_owned()));
        if let Some(hypervisor) = self.clusters.get_mut(cluster) {
            hypervisor.begin(clone.as_ref(), slot.as_ref());
        }
        let found = self.clusters.get(cluster).map(|found| &found.entry.object);
        let (uid, endpoint) = found.map(|object| (object.uid.clone(), object.spec.endpoint.clone())).unzip();
        let (uid, sent) = (uid.unwrap_or_default(), self.now.monotonic);
        let (machine, node) = (operation.machine().cloned(), operation.node().map(str::to_owned));
        self.asked.insert(number, Asked { cluster: cluster.clone(), uid, what, sent, clone, slot, machine, node });
        let endpoint = endpoint.unwrap_or_default();
        let request = hypervisor::Request { cluster: cluster.into(), endpoint, operation };
        self.commands.push(Command::Elsewhere(number, Request::Hypervisor(request)));
        number
    }

    /// Lets the connection to a hypervisor that is gone be forgotten, with its credentials. Nobody waits for the answer.
    pub(super) fn disconnect(&mut self, cluster: &Name) {
        self.last_number += 1;
        let (endpoint, operation) = (String::new(), Operation::Disconnect);
        let request = hypervisor::Request { cluster: cluster.into(), endpoint, operation };
        self.commands.push(Command::Elsewhere(self.last_number, Request::Hypervisor(request)));
    }

    /// Whether it is the turn of a claim to be cloned; otherwise it waits for that, and is called when there is room.
    pub(super) fn may_clone(&mut self, cluster: &Name, claim: &Name, storage: &str, node: &str) -> bool {
        let Some(hypervisor) = self.clusters.get_mut(cluster) else { return false };
        hypervisor.turns.take(claim, &(storage.to_owned(), node.to_owned()))
    }

    /// A clone has ended: there is room for another one.
    pub(super) fn clone_ended(&mut self, cluster: &Name, storage: &str, node: &str) {
        let Some(hypervisor) = self.clusters.get_mut(cluster) else { return };
        for (counts, of) in [(&mut hypervisor.clones, storage), (&mut hypervisor.clones_on, node)] {
            if let Some(count) = counts.get_mut(of) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    counts.remove(of);
                }
            }
        }
    }
}

impl Hypervisor {
    /// Counts a clone and a slot in use.
    fn begin(&mut self, clone: Option<&(String, String)>, slot: Option<&(Holder, String)>) {
        if let Some((storage, node)) = clone {
            *self.clones.entry(storage.clone()).or_default() += 1;
            *self.clones_on.entry(node.clone()).or_default() += 1;
        }
        if let Some((holder, node)) = slot {
            self.slots.acquire(holder.clone(), node);
        }
    }

    /// Counts what was begun for an object of the same name and has not ended: its answers are still to come.
    pub(super) fn count_begun(&mut self, asked: &BTreeMap<u64, Asked>) {
        let name = self.entry.object.name.clone();
        for asked in asked.values().filter(|asked| asked.cluster == name) {
            self.begin(asked.clone.as_ref(), asked.slot.as_ref());
        }
    }

    /// As many claims as may clone now, in the order in which they came.
    pub(super) fn next_clones(&mut self) -> Vec<Due> {
        let limits = self.entry.object.spec.limits;
        let has_room = |counts: &BTreeMap<String, u32>, of: &str, more: u32, most: u32| {
            counts.get(of).copied().unwrap_or_default().saturating_add(more) < most
        };
        let is_free = |(storage, node): &Place, on_storage, on_node| {
            has_room(&self.clones, storage, on_storage, limits.clones_per_storage)
                && has_room(&self.clones_on, node, on_node, limits.clones_per_node)
        };
        self.turns.next(is_free).into_iter().map(Due::Claim).collect()
    }
}

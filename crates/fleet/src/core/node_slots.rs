//! Slots of one hypervisor: at most so many machines are configured, started or destroyed at a time, and at most half of them on one node, so that tasks
//! which hang on a node leave room for the others.

use super::Due;
use super::slots::Queue;
use crate::hypervisor::MachineId;
use crate::object::Name;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Who has a slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A claim, for its machine.
    Claim(Name),
    /// A machine that no claim refers to.
    Orphan(MachineId),
}

/// Who has a slot, on which node, and who waits for one.
#[derive(Debug)]
pub(super) struct NodeSlots {
    limit: usize,
    per_node: usize,
    acquired: BTreeMap<Holder, String>,
    on: BTreeMap<String, usize>,
    waiting: BTreeMap<String, Queue<Due>>,
    /// The node whose turn was last.
    last: String,
}

impl NodeSlots {
    /// So many.
    pub(super) fn new(limit: usize) -> NodeSlots {
        let per_node = limit.div_ceil(2);
        let (acquired, on, waiting) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        NodeSlots { limit, per_node, acquired, on, waiting, last: String::new() }
    }

    /// How many are free on a node.
    pub(super) fn free_on(&self, node: &str) -> usize {
        let on = self.on.get(node).copied().unwrap_or_default();
        self.per_node.saturating_sub(on).min(self.limit.saturating_sub(self.acquired.len()))
    }

    /// Whether there is one on a node that nobody waits for.
    pub(super) fn is_spare_on(&self, node: &str) -> bool {
        self.free_on(node) > 0 && self.waiting.is_empty()
    }

    /// Gives one away.
    pub(super) fn acquire(&mut self, holder: Holder, node: &str) {
        self.release(&holder);
        self.acquired.insert(holder, node.to_owned());
        *self.on.entry(node.to_owned()).or_default() += 1;
    }

    /// It is not needed any more.
    pub(super) fn release(&mut self, holder: &Holder) {
        let Some(node) = self.acquired.remove(holder) else { return };
        if let Some(count) = self.on.get_mut(&node) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.on.remove(&node);
            }
        }
    }

    /// Reconciles this again when one is free on a node.
    pub(super) fn wait(&mut self, due: Due, node: &str) {
        self.waiting.entry(node.to_owned()).or_default().push(due);
    }

    /// As many of those that wait as there are free slots, one of each node in turn. One that does not need a slot any more acquires none, so that this is
    /// called until nobody is returned.
    pub(super) fn next(&mut self) -> Vec<Due> {
        let mut free = self.limit.saturating_sub(self.acquired.len());
        let mut left: BTreeMap<String, usize> =
            self.waiting.keys().map(|node| (node.clone(), self.free_on(node))).filter(|(_, left)| *left > 0).collect();
        let mut next = Vec::new();
        while free > 0 {
            let after = (Bound::Excluded(self.last.clone()), Bound::Unbounded);
            let Some(node) = left.range(after).next().or_else(|| left.iter().next()).map(|(node, _)| node.clone())
            else {
                break;
            };
            let queue = self.waiting.entry(node.clone()).or_default();
            next.extend(queue.pop(1));
            let is_over = queue.is_empty();
            if is_over {
                self.waiting.remove(&node);
            }
            free -= 1;
            match left.get_mut(&node) {
                Some(left) if *left > 1 && !is_over => *left -= 1,
                _ => {
                    left.remove(&node);
                }
            }
            self.last = node;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, Holder, NodeSlots};
    use crate::hypervisor::MachineId;
    use crate::object::Name;

    fn claim(number: usize) -> Name {
        Name::new("ci", &format!("c{number}"))
    }

    fn due(number: usize) -> Due {
        Due::Claim(claim(number))
    }

    #[test]
    fn a_node_whose_tasks_hang_leaves_half_of_the_slots_to_others() {
        let mut slots = NodeSlots::new(64);
        let mut begun = 0;
        while slots.free_on("a") > 0 {
            slots.acquire(Holder::Claim(claim(begun)), "a");
            begun += 1;
        }
        assert_eq!((begun, slots.free_on("b")), (32, 32));
        for number in 100..2_000 {
            slots.wait(due(number), "a");
        }
        slots.wait(due(99), "b");
        assert_eq!(slots.next(), [due(99)], "the node that hangs keeps nobody else waiting");
        assert_eq!(slots.next(), []);
        assert!(!slots.is_spare_on("b"), "those that wait go first");
        slots.release(&Holder::Claim(claim(0)));
        assert_eq!(slots.next(), [due(100)]);
    }

    #[test]
    fn nodes_take_turns_and_each_waits_in_the_order_of_asking() {
        let mut slots = NodeSlots::new(4);
        for number in [1, 2, 3, 1] {
            slots.wait(due(number), "a");
        }
        for number in [4, 5] {
            slots.wait(due(number), "b");
        }
        assert_eq!(slots.next(), [due(1), due(4), due(2), due(5)]);
        for number in [1, 4, 2, 5] {
            slots.acquire(Holder::Claim(claim(number)), if number < 4 { "a" } else { "b" });
        }
        assert_eq!(slots.next(), []);
        slots.acquire(Holder::Orphan(MachineId("7".into())), "c");
        slots.release(&Holder::Claim(claim(4)));
        slots.release(&Holder::Claim(claim(4)));
        assert_eq!(slots.next(), [], "a has its half");
        slots.release(&Holder::Claim(claim(1)));
        assert_eq!(slots.next(), [due(3)]);
        assert!(slots.is_spare_on("b"));
        assert_eq!(NodeSlots::new(1).free_on("a"), 1);
    }
}

//! Slots: at most so many claims are written at a time. More would only wait in memory.

use super::Due;
use crate::object::Name;
use std::collections::{BTreeSet, VecDeque};

/// What waits, each once, in the order of asking.
#[derive(Debug)]
pub(super) struct Queue<T> {
    order: VecDeque<T>,
    members: BTreeSet<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { order: VecDeque::new(), members: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> Queue<T> {
    /// Appends it, unless it waits already.
    pub(super) fn push(&mut self, item: T) {
        if self.members.insert(item.clone()) {
            self.order.push_back(item);
        }
    }

    /// At most so many of those that have waited longest.
    pub(super) fn pop(&mut self, most: usize) -> Vec<T> {
        let first: Vec<T> = self.order.drain(..most.min(self.order.len())).collect();
        for item in &first {
            self.members.remove(item);
        }
        first
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// Who has a slot, and who waits for one.
#[derive(Debug)]
pub(super) struct Slots {
    limit: usize,
    acquired: BTreeSet<Name>,
    waiting: Queue<Due>,
}

impl Slots {
    /// So many.
    pub(super) fn new(limit: usize) -> Slots {
        Slots { limit, acquired: BTreeSet::new(), waiting: Queue::default() }
    }

    /// How many are free.
    pub(super) fn free(&self) -> usize {
        self.limit.saturating_sub(self.acquired.len())
    }

    /// How many are in use.
    pub(super) fn in_use(&self) -> usize {
        self.acquired.len()
    }

    /// Gives one to a claim.
    pub(super) fn acquire(&mut self, claim: &Name) {
        self.acquired.insert(claim.clone());
    }

    /// The claim does not need it any more.
    pub(super) fn release(&mut self, claim: &Name) {
        self.acquired.remove(claim);
    }

    /// Reconciles this again when one is free.
    pub(super) fn wait(&mut self, due: Due) {
        self.waiting.push(due);
    }

    /// As many of those that wait as there are free slots. One that does not need a slot any more acquires none, so that this is called until
    /// nobody is returned.
    pub(super) fn next(&mut self) -> Vec<Due> {
        let free = self.free();
        self.waiting.pop(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(number: usize) -> Name {
        Name::new("ci", &format!("c{number}"))
    }

    #[test]
    fn whoever_waits_gets_a_slot_in_the_order_of_asking_and_each_once() {
        let mut slots = Slots::new(2);
        slots.acquire(&claim(0));
        slots.acquire(&claim(1));
        assert_eq!((slots.free(), slots.in_use()), (0, 2));
        for number in [9, 7, 9, 8] {
            slots.wait(Due::Claim(claim(number)));
        }
        assert_eq!(slots.next(), []);
        slots.release(&claim(0));
        assert_eq!(slots.next(), [Due::Claim(claim(9))]);
        // It does not acquire it: the next one is asked.
        assert_eq!(slots.next(), [Due::Claim(claim(7))]);
        slots.acquire(&claim(7));
        assert_eq!(slots.next(), []);
        slots.release(&claim(1));
        assert_eq!(slots.next(), [Due::Claim(claim(8))]);
        assert_eq!(slots.next(), []);
    }
}

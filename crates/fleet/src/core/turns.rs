//! Turns: a limited number of claims are written, or worked on at a hypervisor, at a time. More would only wait in memory.

use super::Due;
use crate::object::Name;
use std::collections::{BTreeSet, VecDeque};

/// Who has a turn, and who waits for one.
#[derive(Debug)]
pub(super) struct Turns {
    most: usize,
    taken: BTreeSet<Name>,
    /// In the order in which they asked, each once.
    waiting: VecDeque<Due>,
    asked: BTreeSet<Due>,
}

impl Turns {
    /// So many at a time.
    pub(super) fn new(most: usize) -> Turns {
        Turns { most, taken: BTreeSet::new(), waiting: VecDeque::new(), asked: BTreeSet::new() }
    }

    /// How many more there are.
    pub(super) fn free(&self) -> usize {
        self.most.saturating_sub(self.taken.len())
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.taken.len()
    }

    /// This claim takes one.
    pub(super) fn take(&mut self, claim: &Name) {
        self.taken.insert(claim.clone());
    }

    /// This claim gives it back.
    pub(super) fn give_back(&mut self, claim: &Name) {
        self.taken.remove(claim);
    }

    /// Reconciles this again when one is free.
    pub(super) fn wait(&mut self, due: Due) {
        if self.asked.insert(due.clone()) {
            self.waiting.push_back(due);
        }
    }

    /// Those who are next. Somebody who does not want it any more takes none, so that this is asked until nobody is next.
    pub(super) fn offer(&mut self) -> Vec<Due> {
        let next: Vec<Due> = self.waiting.drain(..self.free().min(self.waiting.len())).collect();
        next.iter().for_each(|due| {
            self.asked.remove(due);
        });
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(number: usize) -> Name {
        Name::new("ci", &format!("c{number}"))
    }

    #[test]
    fn whoever_waits_gets_a_turn_in_the_order_of_asking_and_each_once() {
        let mut turns = Turns::new(2);
        turns.take(&claim(0));
        turns.take(&claim(1));
        assert_eq!((turns.free(), turns.taken()), (0, 2));
        for number in [9, 7, 9, 8] {
            turns.wait(Due::Claim(claim(number)));
        }
        assert_eq!(turns.offer(), []);
        turns.give_back(&claim(0));
        assert_eq!(turns.offer(), [Due::Claim(claim(9))]);
        // It takes none: the next one is asked.
        assert_eq!(turns.offer(), [Due::Claim(claim(7))]);
        turns.take(&claim(7));
        assert_eq!(turns.offer(), []);
        turns.give_back(&claim(1));
        assert_eq!(turns.offer(), [Due::Claim(claim(8))]);
        assert_eq!(turns.offer(), []);
    }
}

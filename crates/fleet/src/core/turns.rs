//! The claims that are being written, of which there are a limited number: more writes would only wait in memory for the API server.

use super::Due;
use crate::object::Name;
use std::collections::{BTreeSet, VecDeque};

/// So many claims are written at a time.
const AT_A_TIME: usize = 64;

/// Who writes, and who waits for a turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    writing: BTreeSet<Name>,
    /// In the order in which they asked, each once.
    waiting: VecDeque<Due>,
    asked: BTreeSet<Due>,
}

impl Turns {
    /// How many more claims may be written now.
    pub(super) fn free(&self) -> usize {
        AT_A_TIME.saturating_sub(self.writing.len())
    }

    /// How many are being written.
    pub(super) fn writing(&self) -> usize {
        self.writing.len()
    }

    /// A write of this claim was sent.
    pub(super) fn begin(&mut self, claim: &Name) {
        self.writing.insert(claim.clone());
    }

    /// Reconciles this again when a turn is free.
    pub(super) fn wait(&mut self, due: Due) {
        if self.asked.insert(due.clone()) {
            self.waiting.push_back(due);
        }
    }

    /// A write of this claim was answered; who is next.
    pub(super) fn end(&mut self, claim: &Name) -> Option<Due> {
        self.writing.remove(claim);
        let next = self.waiting.pop_front()?;
        self.asked.remove(&next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(number: usize) -> Name {
        Name::new("ci", &format!("c{number}"))
    }

    #[test]
    fn whoever_waits_for_a_turn_gets_it_in_the_order_of_asking() {
        let mut turns = Turns::default();
        for number in 0..AT_A_TIME {
            assert!(turns.free() > 0);
            turns.begin(&claim(number));
        }
        assert_eq!((turns.free(), turns.writing()), (0, AT_A_TIME));
        for number in [99, 70, 99] {
            turns.wait(Due::Claim(claim(number)));
        }
        assert_eq!(turns.end(&claim(0)), Some(Due::Claim(claim(99))));
        assert_eq!(turns.end(&claim(1)), Some(Due::Claim(claim(70))));
        assert_eq!(turns.end(&claim(2)), None);
        assert_eq!(turns.free(), 3);
    }
}

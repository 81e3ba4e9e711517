//! How long a watch may send nothing before it counts as dead, and when its silence is a fault.

use std::time::Duration;

/// A server that sends no bookmarks is listed this many times the shortest silence apart, at most.
const LONGEST: u32 = 8;

/// What is known of the silence of a watch.
///
/// A server sends a bookmark about once a minute, but only if it knows of progress: where etcd does not report any, a kind without changes is
/// silent for hours. Only a list tells that from a dead connection, and a list that has nothing new is no reason to ask for the next one as soon.
#[derive(Debug)]
pub(super) struct Silence {
    shortest: Duration,
    /// How many silent watches in a row had nothing to report.
    quiet: u32,
    /// How many silent watches in a row had something to report.
    dead: u32,
}

impl Silence {
    /// Of a server whose bookmarks come more often than this.
    pub(super) fn new(shortest: Duration) -> Silence {
        Silence { shortest, quiet: 0, dead: 0 }
    }

    /// A watch that is silent for longer may be dead.
    pub(super) fn limit(&self) -> Duration {
        self.shortest * 2_u32.saturating_pow(self.quiet).min(LONGEST)
    }

    /// A bookmark has come: there are some.
    pub(super) fn bookmarked(&mut self) {
        (self.quiet, self.dead) = (0, 0);
    }

    /// What a list after a silent watch says: whether there was something that the watch should have reported.
    pub(super) fn explained(&mut self, has_missed: bool) {
        (self.quiet, self.dead) =
            if has_missed { (0, self.dead.saturating_add(1)) } else { (self.quiet.saturating_add(1), 0) };
    }

    /// The watch has ended for another reason.
    pub(super) fn ended(&mut self) {
        self.dead = 0;
    }

    /// Whether what happens is not reported. One change may have come between the end of a watch and the list.
    pub(super) fn is_doubted(&self) -> bool {
        self.dead > 1
    }
}

#[cfg(test)]
mod tests {
    use super::Silence;
    use std::time::Duration;

    #[test]
    fn a_server_without_bookmarks_is_listed_less_and_less_often_while_nothing_happens() {
        let mut silence = Silence::new(Duration::from_secs(75));
        let mut limits = Vec::new();
        for _ in 0..6 {
            limits.push(silence.limit().as_secs());
            silence.explained(false);
            assert!(!silence.is_doubted());
        }
        assert_eq!(limits, [75, 150, 300, 600, 600, 600]);
        silence.bookmarked();
        assert_eq!(silence.limit().as_secs(), 75);
    }

    #[test]
    fn two_silent_watches_that_had_something_to_report_are_a_fault() {
        let mut silence = Silence::new(Duration::from_secs(75));
        silence.explained(false);
        silence.explained(true);
        assert!(!silence.is_doubted());
        assert_eq!(silence.limit().as_secs(), 75);
        silence.explained(true);
        assert!(silence.is_doubted());
        silence.explained(false);
        assert!(!silence.is_doubted());
        for _ in 0..2 {
            silence.explained(true);
            silence.ended();
        }
        assert!(!silence.is_doubted());
    }
}

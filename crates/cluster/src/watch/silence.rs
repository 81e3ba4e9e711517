//! How long a watch may send nothing before it counts as dead, and when its silence is a fault.

use std::time::Duration;

/// A server that sends no bookmarks is listed so often at least. The server ends every watch after ten minutes; this has to be earlier.
const LONGEST: Duration = Duration::from_secs(300);

/// What is known of the silence of a watch.
///
/// A server sends a bookmark about once a minute, but only if it knows of progress: where etcd does not report any, a kind without changes is
/// silent for hours. Only a list tells that from a dead connection, and a list that has nothing new is no reason to ask for the next one as soon.
#[derive(Debug)]
pub(super) struct Silence {
    shortest: Duration,
    /// How many silent watches in a row had nothing to report.
    quiet: u32,
    /// How many silent watches had something to report, since one has said anything.
    dead: u32,
    /// How many objects there are, by all that was reported.
    objects: usize,
}

impl Silence {
    /// Of a server whose bookmarks come more often than this.
    pub(super) fn new(shortest: Duration) -> Silence {
        Silence { shortest, quiet: 0, dead: 0, objects: 0 }
    }

    /// A watch that is silent for longer may be dead.
    pub(super) fn limit(&self) -> Duration {
        self.shortest.saturating_mul(2_u32.saturating_pow(self.quiet)).min(LONGEST.max(self.shortest))
    }

    /// A bookmark has come: there are some.
    pub(super) fn bookmarked(&mut self) {
        (self.quiet, self.dead) = (0, 0);
    }

    /// The watch has reported a change.
    pub(super) fn reported(&mut self, kind: &str) {
        self.dead = 0;
        match kind {
            "ADDED" => self.objects += 1,
            "DELETED" => self.objects = self.objects.saturating_sub(1),
            _ => {}
        }
    }

    /// A list has come: how many objects it has, and whether one is newer than what was reported.
    pub(super) fn listed(&mut self, objects: usize, has_newer: bool, was_silent: bool) {
        let is_less = objects < std::mem::replace(&mut self.objects, objects);
        match (was_silent, has_newer || is_less) {
            (true, true) => (self.quiet, self.dead) = (0, self.dead.saturating_add(1)),
            (true, false) => self.quiet = self.quiet.saturating_add(1),
            // The watch has ended for another reason.
            (false, _) => self.dead = 0,
        }
    }

    /// Whether what happens is not reported. One change may have come between the end of a watch and the list.
    pub(super) fn is_doubted(&self) -> bool {
        self.dead > 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::WATCH_SECONDS;
    use super::{LONGEST, Silence};
    use std::time::Duration;

    fn silence() -> Silence {
        Silence::new(Duration::from_secs(75))
    }

    #[test]
    fn a_server_without_bookmarks_is_listed_less_and_less_often_while_nothing_happens() {
        let mut silence = silence();
        let mut limits = Vec::new();
        for _ in 0..5 {
            limits.push(silence.limit().as_secs());
            silence.listed(3, false, true);
            assert!(!silence.is_doubted());
        }
        assert_eq!(limits, [75, 150, 300, 300, 300]);
        silence.bookmarked();
        assert_eq!(silence.limit().as_secs(), 75);
        assert!(LONGEST.as_secs() < u64::from(WATCH_SECONDS), "a watch that the server ends is not silent");
        assert_eq!(Silence::new(Duration::from_secs(400)).limit().as_secs(), 400);
    }

    #[test]
    fn silent_watches_that_had_something_to_report_are_a_fault_until_one_speaks() {
        let mut silence = silence();
        silence.listed(3, false, false);
        silence.listed(3, true, true);
        assert!(!silence.is_doubted());
        silence.listed(3, false, true);
        assert!(!silence.is_doubted());
        // The number of objects is less: one was deleted, and nobody has said so.
        silence.listed(2, false, true);
        assert!(silence.is_doubted());
        assert_eq!(silence.limit().as_secs(), 75);
        silence.listed(2, false, true);
        assert!(silence.is_doubted());
        silence.reported("MODIFIED");
        assert!(!silence.is_doubted());
        silence.listed(2, true, true);
        silence.listed(2, true, false);
        silence.listed(2, true, true);
        assert!(!silence.is_doubted(), "a watch that ends for another reason is not silent");
    }

    #[test]
    fn objects_that_a_watch_reports_are_counted() {
        let mut silence = silence();
        silence.listed(1, false, false);
        ["ADDED", "ADDED", "MODIFIED", "DELETED"].into_iter().for_each(|kind| silence.reported(kind));
        for objects in [2, 1, 0] {
            silence.listed(objects, false, true);
        }
        assert_eq!(silence.dead, 2);
    }
}

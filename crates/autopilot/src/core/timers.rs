//! What happens without an event: one timer for each thing that waits.

use catalog::Query;
use change::{Key, Moment};
use protocol::Search;
use std::collections::{BTreeMap, BTreeSet};

/// What a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Writes wait no longer for the first lists.
    FirstLists,
    /// Ask the server what it serves.
    Discover,
    /// Decide about an object again.
    Reconcile(Key),
    /// Read an object again.
    Refetch(Key),
    /// Ask a query again.
    Query(Query),
    /// Search again.
    Search(Search),
    /// Searches wait no longer for writes.
    Searches,
    /// There is room for another write, because one takes long.
    Room,
    /// Write the records again.
    Save,
    /// Publish the report.
    Publish,
}

/// All timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Moment, Timer)>,
    times: BTreeMap<Timer, Moment>,
}

impl Timers {
    /// Sets a timer; one that is set to an earlier moment stays.
    pub(crate) fn set(&mut self, timer: Timer, at: Moment) {
        match self.times.get(&timer) {
            Some(set) if *set <= at => return,
            Some(set) => {
                self.by_time.remove(&(*set, timer.clone()));
            }
            None => {}
        }
        self.times.insert(timer.clone(), at);
        self.by_time.insert((at, timer));
    }

    /// Takes the timers that have expired, the earliest first.
    pub(crate) fn expired(&mut self, now: Moment) -> Vec<Timer> {
        let mut expired = Vec::new();
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, timer)) = self.by_time.pop_first() else { break };
            self.times.remove(&timer);
            expired.push(timer);
        }
        expired
    }

    /// When the next of the timers expires that somebody waits for.
    pub(crate) fn next(&self, is_awaited: impl Fn(&Timer) -> bool) -> Option<Moment> {
        self.by_time.iter().find(|(_, timer)| is_awaited(timer)).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Timer, Timers};
    use change::Moment;
    use std::time::Duration;

    #[test]
    fn the_earlier_of_two_moments_counts() {
        let at = |millis: u64| Moment::since_start(Duration::from_millis(millis));
        let mut timers = Timers::default();
        timers.set(Timer::Discover, at(20));
        timers.set(Timer::Discover, at(30));
        timers.set(Timer::Searches, at(25));
        timers.set(Timer::FirstLists, at(40));
        timers.set(Timer::FirstLists, at(10));
        assert_eq!(timers.next(|_| true), Some(at(10)));
        assert_eq!(timers.next(|timer| *timer != Timer::FirstLists), Some(at(20)));
        assert_eq!(timers.expired(at(20)), [Timer::FirstLists, Timer::Discover]);
        assert_eq!((timers.expired(at(99)), timers.next(|_| true)), (vec![Timer::Searches], None));
    }
}

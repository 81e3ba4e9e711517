//! What happens without an event: one timer for each thing that waits.

use change::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// All timers of a core; `T` says what each is for.
#[derive(Debug)]
pub struct Timers<T> {
    by_time: BTreeSet<(Moment, T)>,
    times: BTreeMap<T, Moment>,
}

impl<T> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers { by_time: BTreeSet::new(), times: BTreeMap::new() }
    }
}

impl<T: Ord + Clone> Timers<T> {
    /// Sets a timer; one that is set to an earlier moment stays.
    pub fn set(&mut self, timer: T, at: Moment) {
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

    /// Removes a timer that nobody waits for any more.
    pub fn remove(&mut self, timer: &T) {
        if let Some((timer, at)) = self.times.remove_entry(timer) {
            self.by_time.remove(&(at, timer));
        }
    }

    /// How many are set.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// Takes the timers that have expired, the earliest first.
    pub fn expired(&mut self, now: Moment) -> Vec<T> {
        let mut expired = Vec::new();
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, timer)) = self.by_time.pop_first() else { break };
            self.times.remove(&timer);
            expired.push(timer);
        }
        expired
    }

    /// When the next of the timers expires that somebody waits for.
    pub fn next(&self, is_awaited: impl Fn(&T) -> bool) -> Option<Moment> {
        self.by_time.iter().find(|(_, timer)| is_awaited(timer)).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;
    use change::Moment;
    use std::time::Duration;

    #[test]
    fn the_earlier_of_two_moments_counts() {
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        enum Timer {
            FirstLists,
            Discover,
            Searches,
        }
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
        timers.set(Timer::Discover, at(50));
        timers.remove(&Timer::Discover);
        timers.remove(&Timer::FirstLists);
        assert_eq!(timers.count(), 1);
        assert_eq!((timers.expired(at(99)), timers.next(|_| true)), (vec![Timer::Searches], None));
    }
}

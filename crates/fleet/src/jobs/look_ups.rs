//! Jobs that are looked up one by one: those that no list confirms, and those of events that are not believed as they are.

use super::job::{Facts, JobKey, Repository};
use change::{Backoff, Moment};
use std::collections::BTreeMap;
use std::time::Duration;

/// After a look-up that failed.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(20), longest: Duration::from_secs(1_800) };
/// An event whose job could not be looked up so often is forgotten.
const GIVE_UP: u32 = 8;
/// No more events are kept that have to be looked up before they are believed; polls find their jobs too.
const MOST_DOUBTED: usize = 1_000;

/// Those that are to be looked up.
#[derive(Debug, Default)]
pub(super) struct LookUps(BTreeMap<JobKey, Entry>);

#[derive(Debug)]
struct Entry {
    facts: Facts,
    /// Whether only an event tells of it.
    is_doubted: bool,
    is_waiting: bool,
    next: Moment,
    failures: u32,
}

impl LookUps {
    /// An event tells of a job that has to be looked up first.
    pub(super) fn doubt(&mut self, facts: &Facts) {
        if self.0.values().filter(|entry| entry.is_doubted).count() < MOST_DOUBTED {
            self.0.entry(facts.key).or_insert_with(|| Entry::new(facts, true));
        }
    }

    /// Keeps of the doubted ones those that concern somebody, and of the others these.
    pub(super) fn set<'a>(&mut self, wanted: impl Iterator<Item = &'a Facts>, concerns: impl Fn(&Facts) -> bool) {
        let wanted: BTreeMap<JobKey, &Facts> = wanted.map(|facts| (facts.key, facts)).collect();
        let is_kept = |key: &JobKey, entry: &Entry| match entry.is_doubted {
            true => concerns(&entry.facts),
            false => wanted.contains_key(key),
        };
        // What is being looked up is answered.
        self.0.retain(|key, entry| entry.is_waiting || is_kept(key, entry));
        for (key, facts) in wanted {
            self.0.entry(key).or_insert_with(|| Entry::new(facts, false));
        }
    }

    /// The repository that a job is looked up in.
    pub(super) fn repository(&self, key: &JobKey) -> Option<&Repository> {
        self.0.get(key).map(|entry| &entry.facts.repository)
    }

    /// Takes that there was an answer, or that it failed.
    pub(super) fn answered(&mut self, key: &JobKey, is_failed: bool, now: Moment) {
        let Some(entry) = self.0.get_mut(key) else { return };
        entry.is_waiting = false;
        entry.next = now.after(AGAIN.pause(entry.failures));
        entry.failures = entry.failures.saturating_add(1);
        if !is_failed || (entry.is_doubted && entry.failures >= GIVE_UP) {
            self.0.remove(key);
        }
    }

    /// Those that `admits` lets through now; they wait for their answers from now on.
    pub(super) fn ask(
        &mut self,
        now: Moment,
        mut admits: impl FnMut(&Repository) -> bool,
    ) -> Vec<(Repository, JobKey)> {
        let due = self.0.iter_mut().filter(|(_, entry)| !entry.is_waiting && entry.next <= now);
        let admitted = due.filter(|(_, entry)| admits(&entry.facts.repository));
        let asked = admitted.map(|(key, entry)| {
            entry.is_waiting = true;
            (entry.facts.repository.clone(), *key)
        });
        asked.collect()
    }
}

impl Entry {
    fn new(facts: &Facts, is_doubted: bool) -> Entry {
        Entry { facts: facts.clone(), is_doubted, is_waiting: false, next: Moment::default(), failures: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{GIVE_UP, LookUps};
    use crate::jobs::demand::tests::job;
    use crate::jobs::job::Facts;
    use change::Moment;
    use std::time::Duration;

    fn at(second: u64) -> Moment {
        Moment::since_start(Duration::from_secs(second))
    }

    /// How often a job is looked up within a day, if that fails each time, and when last.
    fn attempts(look_ups: &mut LookUps, wanted: &[Facts]) -> (u32, u64) {
        let (mut count, mut last) = (0, 0);
        for second in 0..24 * 3_600 {
            look_ups.set(wanted.iter(), |_| true);
            for (_, key) in look_ups.ask(at(second), |_| true) {
                look_ups.answered(&key, true, at(second));
                (count, last) = (count + 1, second);
            }
        }
        (count, last)
    }

    #[test]
    fn a_look_up_that_fails_is_repeated_ever_more_rarely_and_one_of_an_event_is_given_up() {
        let mut suspects = LookUps::default();
        let (count, last) = attempts(&mut suspects, &[job(1, "acme/shop", &["pve"])]);
        assert!((50..60).contains(&count) && last > 23 * 3_600, "{count} times, last at {last}");
        let mut doubted = LookUps::default();
        doubted.doubt(&job(1, "acme/shop", &["pve"]));
        let (count, last) = attempts(&mut doubted, &[]);
        assert!(count == GIVE_UP && last < 3 * 3_600, "{count} times, last at {last}");
        assert!(doubted.0.is_empty());
    }

    #[test]
    fn nothing_is_looked_up_that_concerns_nobody_or_has_ended() {
        let mut look_ups = LookUps::default();
        look_ups.doubt(&job(1, "acme/shop", &["ubuntu-latest"]));
        let suspect = [job(2, "acme/shop", &["pve"])];
        look_ups.set(suspect.iter(), |facts| facts.labels.contains("pve"));
        let asked = look_ups.ask(at(0), |_| true);
        assert_eq!(asked.iter().map(|(_, key)| *key).collect::<Vec<_>>(), [suspect[0].key]);
        look_ups.answered(&suspect[0].key, true, at(0));
        look_ups.set([].iter(), |_| true);
        assert_eq!(look_ups.ask(at(100), |_| true), []);
    }
}

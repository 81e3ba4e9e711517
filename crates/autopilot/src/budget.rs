//! How many corrections one object may still get before another writer counts as fighting us.

use change::now::later;
use jiff::Timestamp;
use std::fmt;
use std::time::Duration;

/// Corrections in a burst.
const FAST: u64 = 10 * TOKEN;
/// One more of these every 6 seconds.
const FAST_MILLIS: u64 = 6_000;
/// Half of the most corrections an hour: with as many refilled in an hour no hour sees more than 60.
const SLOW: u64 = 30 * TOKEN;
/// One more of these every 2 minutes.
const SLOW_MILLIS: u64 = 120_000;
/// Tokens are counted in thousandths, so that a refill between two corrections loses nothing.
const TOKEN: u64 = 1_000;

/// Two token buckets and the time they were last filled. They are stored in an annotation of the object, so they survive a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    fast: u64,
    slow: u64,
    at: Timestamp,
}

impl Budget {
    /// A full one.
    pub fn full(now: Timestamp) -> Budget {
        Budget { fast: FAST, slow: SLOW, at: now }
    }

    /// Reads what `Display` wrote. An unreadable value is a full budget: whoever spoils it only gets corrected again.
    pub fn read(text: Option<&str>, now: Timestamp) -> Budget {
        Budget::parse(text).map_or(Budget::full(now), |budget| budget.refilled(now))
    }

    /// What `Display` wrote, without a refill.
    pub fn parse(text: Option<&str>) -> Option<Budget> {
        let mut numbers = text?.split(' ');
        let (fast, slow) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let at = Timestamp::from_millisecond(numbers.next()?.parse().ok()?).ok()?;
        Some(Budget { fast: FAST.min(fast), slow: SLOW.min(slow), at })
    }

    /// When there is a correction again.
    pub fn next(self, now: Timestamp) -> Timestamp {
        let missing = |has: u64, millis: u64| TOKEN.saturating_sub(has).saturating_mul(millis).div_ceil(TOKEN);
        let budget = self.refilled(now);
        let wait = missing(budget.fast, FAST_MILLIS).max(missing(budget.slow, SLOW_MILLIS));
        later(now, Duration::from_millis(wait))
    }

    /// Whether more than one correction was made lately.
    pub fn is_worn(self, now: Timestamp) -> bool {
        // The fast one is refilled sooner, so it is never worn alone.
        self.refilled(now).slow < SLOW - TOKEN
    }

    /// The lesser of this one and another.
    #[must_use]
    pub fn at_most(self, other: Option<Budget>, now: Timestamp) -> Budget {
        let Some(other) = other.map(|other| other.refilled(now)) else { return self };
        let own = self.refilled(now);
        Budget { fast: own.fast.min(other.fast), slow: own.slow.min(other.slow), at: now }
    }

    /// Takes one correction; `None` if there is none left.
    #[must_use]
    pub fn spend(self, now: Timestamp) -> Option<Budget> {
        let budget = self.refilled(now);
        let (fast, slow) = (budget.fast.checked_sub(TOKEN)?, budget.slow.checked_sub(TOKEN)?);
        Some(Budget { fast, slow, ..budget })
    }

    /// A clock that was set back refills nothing, and one that jumped ahead at most fills it.
    fn refilled(self, now: Timestamp) -> Budget {
        let passed = u64::try_from(now.duration_since(self.at).as_millis()).unwrap_or(0);
        Budget {
            fast: FAST.min(self.fast.saturating_add(passed.saturating_mul(TOKEN) / FAST_MILLIS)),
            slow: SLOW.min(self.slow.saturating_add(passed.saturating_mul(TOKEN) / SLOW_MILLIS)),
            at: now,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.fast, self.slow, self.at.as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;
    use jiff::Timestamp;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    /// Spends at every moment of `times`, with a restart between any two; returns how many corrections there were.
    fn spend_at(times: impl IntoIterator<Item = i64>) -> usize {
        let mut text = Budget::full(at(0)).to_string();
        let mut count = 0;
        for now in times.into_iter().map(at) {
            if let Some(budget) = Budget::read(Some(&text), now).spend(now) {
                text = budget.to_string();
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_burst_gets_ten_corrections_and_one_more_every_six_seconds() {
        assert_eq!(spend_at((0..100).map(|_| 0)), 10);
        assert_eq!(spend_at((0..600).map(|step| step * 100)), 10 + 9);
    }

    #[test]
    fn no_hour_sees_more_than_sixty_corrections() {
        const HOUR: i64 = 3_600_000;
        assert!(spend_at((0..36_000).map(|step| step * 100)) <= 60);
        // Also not the second hour of a war that goes on.
        let both = spend_at((0..72_000).map(|step| step * 100));
        assert!(both <= 90, "{both}");
        assert_eq!(spend_at([0, HOUR, 2 * HOUR]), 3);
    }

    #[test]
    fn a_spent_budget_says_when_there_is_more() {
        let now = at(0);
        let mut spent = Budget::full(now);
        assert!(!spent.spend(now).unwrap().is_worn(now), "one correction is no fight");
        let twice = spent.spend(now).and_then(|left| left.spend(now)).unwrap();
        assert!(twice.is_worn(now) && twice.is_worn(at(30_000)), "two within a minute may be one");
        while let Some(left) = spent.spend(now) {
            spent = left;
        }
        assert!(spent.is_worn(now));
        assert_eq!(spent.next(now), at(6_000));
        assert!(spent.spend(at(5_999)).is_none() && spent.spend(at(6_000)).is_some());
    }

    #[test]
    fn a_clock_set_back_gives_nothing_and_nonsense_is_a_full_budget() {
        let spent = (0..10).fold(Budget::full(at(1_000_000)), |budget, _| budget.spend(at(1_000_000)).unwrap());
        assert!(spent.spend(at(0)).is_none());
        assert_eq!(Budget::read(Some("what?"), at(5)), Budget::full(at(5)));
        assert_eq!(Budget::read(Some("99999999 99999999 5"), at(5)), Budget::full(at(5)));
        assert_eq!(Budget::read(None, at(5)), Budget::full(at(5)));
    }
}

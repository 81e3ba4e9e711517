//! How many corrections one object may still get before it is a fight.

use std::fmt;

/// Corrections in a burst.
const FAST: u64 = 10 * TOKEN;
/// One more of these every 6 seconds.
const FAST_MILLIS: u64 = 6_000;
/// Half of the most corrections an hour: with as many refilled in an hour no hour sees more than 60.
const SLOW: u64 = 30 * TOKEN;
/// One more of these every 2 minutes.
const SLOW_MILLIS: u64 = 120_000;
/// Tokens are counted in thousandths, so that nothing is lost between two looks.
const TOKEN: u64 = 1_000;

/// Two buckets of corrections and the moment they were last filled. It rides on the object and survives us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    fast: u64,
    slow: u64,
    /// Milliseconds since 1970.
    at: i64,
}

impl Budget {
    /// A full one.
    pub fn full(now: i64) -> Budget {
        Budget { fast: FAST, slow: SLOW, at: now }
    }

    /// Reads what `Display` wrote. What cannot be read is a full budget: whoever spoils it only gets corrected again.
    pub fn read(text: Option<&str>, now: i64) -> Budget {
        Budget::parse(text).map_or(Budget::full(now), |budget| budget.refilled(now))
    }

    /// What `Display` wrote, as it was written.
    pub fn parse(text: Option<&str>) -> Option<Budget> {
        let mut numbers = text?.split(' ');
        let (fast, slow) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(Budget { fast: FAST.min(fast), slow: SLOW.min(slow), at: numbers.next()?.parse().ok()? })
    }

    /// When there is a correction again, in milliseconds since 1970.
    pub fn next(self, now: i64) -> i64 {
        let missing = |has: u64, millis: u64| TOKEN.saturating_sub(has).saturating_mul(millis).div_ceil(TOKEN);
        let budget = self.refilled(now);
        let wait = missing(budget.fast, FAST_MILLIS).max(missing(budget.slow, SLOW_MILLIS));
        now.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX))
    }

    /// Whether more than one correction was made lately.
    pub fn is_worn(self, now: i64) -> bool {
        let budget = self.refilled(now);
        budget.fast < FAST - TOKEN || budget.slow < SLOW - TOKEN
    }

    /// The lesser of this one and another.
    #[must_use]
    pub fn at_most(self, other: Option<Budget>, now: i64) -> Budget {
        let Some(other) = other.map(|other| other.refilled(now)) else { return self };
        let own = self.refilled(now);
        Budget { fast: own.fast.min(other.fast), slow: own.slow.min(other.slow), at: now }
    }

    /// Takes one correction; `None` if there is none left.
    #[must_use]
    pub fn spend(self, now: i64) -> Option<Budget> {
        let budget = self.refilled(now);
        let (fast, slow) = (budget.fast.checked_sub(TOKEN)?, budget.slow.checked_sub(TOKEN)?);
        Some(Budget { fast, slow, ..budget })
    }

    /// A clock that was set back refills nothing, and one that jumped ahead at most fills it.
    fn refilled(self, now: i64) -> Budget {
        let passed = u64::try_from(now.saturating_sub(self.at)).unwrap_or(0);
        Budget {
            fast: FAST.min(self.fast.saturating_add(passed.saturating_mul(TOKEN) / FAST_MILLIS)),
            slow: SLOW.min(self.slow.saturating_add(passed.saturating_mul(TOKEN) / SLOW_MILLIS)),
            at: now,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.fast, self.slow, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    /// Spends at every moment of `times`, with a restart between any two; returns how many corrections there were.
    fn spend_at(times: impl IntoIterator<Item = i64>) -> usize {
        let mut text = Budget::full(0).to_string();
        let mut count = 0;
        for now in times {
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
        let mut spent = Budget::full(0);
        assert!(!spent.spend(0).unwrap().is_worn(0), "one correction is no fight");
        while let Some(left) = spent.spend(0) {
            spent = left;
        }
        assert!(spent.is_worn(0));
        assert_eq!(spent.next(0), 6_000);
        assert!(spent.spend(5_999).is_none() && spent.spend(6_000).is_some());
    }

    #[test]
    fn a_clock_set_back_gives_nothing_and_nonsense_is_a_full_budget() {
        let spent = (0..10).fold(Budget::full(1_000_000), |budget, _| budget.spend(1_000_000).unwrap());
        assert!(spent.spend(0).is_none());
        assert_eq!(Budget::read(Some("what?"), 5), Budget::full(5));
        assert_eq!(Budget::read(Some("99999999 99999999 5"), 5), Budget::full(5));
        assert_eq!(Budget::read(None, 5), Budget::full(5));
    }
}

//! When things happened, by the wall clock as it is now. From the moment on at which a time became known, its age counts by the monotonic clock:
//! a wall clock that is set back or forth ends nothing early, and keeps nothing for longer.

use crate::machine::time_of;
use api::fleet::MachineClaimStatus;
use change::Now;
use jiff::{SignedDuration, Timestamp};

/// A time that an object says, in whole seconds as objects do, and what the wall clock showed when this process began, as it was set when that became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    said: i64,
    began: i64,
}

/// When what is known of a claim has happened.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) created: Known,
    pub(super) started: Known,
    pub(super) idle: Known,
    pub(super) draining: Known,
    pub(super) deleting: Known,
}

impl Times {
    pub(super) fn follow_status(&mut self, status: &MachineClaimStatus, now: Now) {
        self.started.follow_once(time_of(status.started_time.as_ref()), now);
        self.idle.follow(time_of(status.idle_since.as_ref()), now);
    }
}

/// No time has this second.
const NEVER: i64 = i64::MIN;

impl Default for Known {
    fn default() -> Known {
        Known { said: NEVER, began: 0 }
    }
}

impl Known {
    /// Takes what the object says now, or will say when a write has arrived.
    pub(super) fn follow(&mut self, said: Option<Timestamp>, now: Now) {
        let Some(said) = said.map(Timestamp::as_second) else { return };
        if said != self.said {
            *self = Known { said, began: began(now) };
        }
    }

    /// Takes what the object says of something that happens once. Its age is that which was known first: of two writes of the time, with the clock set in
    /// between, either may be the one that has arrived.
    pub(super) fn follow_once(&mut self, said: Option<Timestamp>, now: Now) {
        let before = self.said;
        if before == NEVER {
            return self.follow(said, now);
        }
        let Some(said) = said.map(Timestamp::as_second) else { return };
        let later = said.saturating_sub(before).saturating_mul(1_000);
        *self = Known { said, began: self.began.saturating_add(later) };
    }

    /// When it happened last.
    pub(super) fn at(self, now: Now) -> Option<Timestamp> {
        let said = Timestamp::from_second(self.said).ok().filter(|_| self.said != NEVER)?;
        let set = SignedDuration::from_millis(began(now).saturating_sub(self.began));
        Some(said.saturating_add(set).unwrap_or(said))
    }
}

fn began(now: Now) -> i64 {
    let elapsed = i64::try_from(now.monotonic.elapsed().as_millis()).unwrap_or(i64::MAX);
    now.wall.as_millisecond().saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::Known;
    use change::{Moment, Now};
    use jiff::Timestamp;
    use std::time::Duration;

    fn at(wall: i64, monotonic: u64) -> Now {
        let wall = Timestamp::from_second(wall).unwrap();
        Now { wall, monotonic: Moment::since_start(Duration::from_secs(monotonic)) }
    }

    #[test]
    fn the_age_of_what_happens_once_is_that_which_was_known_first() {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let age = |known: Known, now: Now| now.wall.duration_since(known.at(now).unwrap()).as_secs();
        let mut known = Known::default();
        known.follow_once(Some(second(10_000)), at(10_000, 0));
        // The clock is set, the time is written again, and the first write turns out to have arrived.
        known.follow_once(Some(second(90_001)), at(90_001, 1));
        assert_eq!(age(known, at(90_002, 2)), 2);
        known.follow_once(Some(second(10_000)), at(90_003, 3));
        assert_eq!(age(known, at(90_004, 4)), 4);
    }

    #[test]
    fn an_age_counts_by_the_monotonic_clock_once_it_is_known() {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let age = |known: Known, now: Now| now.wall.duration_since(known.at(now).unwrap()).as_secs();
        let (mut known, mut late) = (Known::default(), Known::default());
        assert_eq!(known.at(at(1_000, 5)), None);
        known.follow(Some(second(900)), at(1_000, 5));
        assert_eq!(age(known, at(1_010, 15)), 110);
        for set in [-5_000, 0, 5_000] {
            known.follow(Some(second(900)), at(1_010 + set, 15));
            assert_eq!(age(known, at(1_020 + set, 25)), 120, "the clock was set by {set} s");
        }
        // What becomes known after that is as old as the clock says.
        late.follow(Some(second(5_990)), at(6_010, 15));
        assert_eq!(age(late, at(6_020, 25)), 30);
        late.follow(None, at(6_021, 25));
        assert_eq!(age(late, at(6_020, 25)), 30, "what is being written is known before the object says it");
    }
}

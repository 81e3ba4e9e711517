//! The present moment, as an argument: nothing that decides reads a clock.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// The present moment on the two clocks a decision may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// What people and other machines call it; it may be set back or forth.
    pub wall: Timestamp,
    /// How long this process has run; it only grows.
    pub monotonic: Moment,
}

/// A moment of the monotonic clock: the time since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Now {
    /// The monotonic moment at which the wall clock shows `wall`, if nobody sets it; a past one is now.
    pub fn moment_of(&self, wall: Timestamp) -> Moment {
        let wait = wall.duration_since(self.wall);
        self.monotonic.after(Duration::try_from(wait).unwrap_or_default())
    }

    /// The wall time after this long.
    pub fn wall_after(&self, wait: Duration) -> Timestamp {
        later(self.wall, wait)
    }
}

impl Moment {
    /// This long after the process started.
    pub fn since_start(time: Duration) -> Moment {
        Moment(time)
    }

    /// The time since the process started.
    pub fn elapsed(self) -> Duration {
        self.0
    }

    /// The moment this much later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(wait))
    }
}

/// This much later on the wall clock; at most the last moment it can show.
pub fn later(wall: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    wall.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Moment, Now, later};
    use jiff::Timestamp;
    use std::time::Duration;

    #[test]
    fn both_clocks_go_on_together() {
        let second = |number: i64| Timestamp::from_second(number).unwrap();
        let seconds = Duration::from_secs;
        let now = Now { wall: second(100), monotonic: Moment::since_start(seconds(7)) };
        assert_eq!(now.moment_of(second(103)), Moment::since_start(seconds(10)));
        assert_eq!(now.moment_of(second(50)), now.monotonic, "a past moment is now");
        assert_eq!((now.wall_after(seconds(3)), now.monotonic.after(seconds(3)).elapsed()), (second(103), seconds(10)));
        assert_eq!(later(second(100), Duration::MAX), Timestamp::MAX, "at most the last moment");
    }
}

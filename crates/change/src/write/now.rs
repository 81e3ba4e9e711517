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

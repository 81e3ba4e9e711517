//! The clocks of a process: cores get the present moment from here.

use change::{Moment, Now};
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// A wall clock, and a monotonic one that counts from the start of the process.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// Starts the monotonic clock.
    pub fn start() -> Clock {
        Clock { started: Instant::now() }
    }

    /// The present moment.
    pub fn now(&self) -> Now {
        Now { wall: Timestamp::now(), monotonic: Moment::since_start(self.started.elapsed()) }
    }

    /// How long it is until a moment; nothing if it has passed.
    pub fn until(&self, moment: Moment) -> Duration {
        moment.elapsed().saturating_sub(self.started.elapsed())
    }
}

//! The time since the guest has started, which goes on while the machine is suspended and does not jump with the calendar.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A clock that begins at zero.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Duration);

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Clock {
        Clock(since_boot())
    }

    /// The time since its start.
    pub(crate) fn now(&self) -> Duration {
        since_boot().saturating_sub(self.0)
    }
}

fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

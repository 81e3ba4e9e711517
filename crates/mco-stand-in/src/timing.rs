//! How long everything takes.

use std::time::Duration;

/// How long everything takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the first change of a MachineConfig to the render; further changes in between are rendered with it.
    pub render_delay: Duration,
    /// From a change to the pool's status that reports it.
    pub status_lag: Duration,
    /// The time to drain a node.
    pub drain: Duration,
    /// The time to write files and to reload or restart services, where this is enough.
    pub apply: Duration,
    /// The time from the shutdown of a node until it is ready again.
    pub restart: Duration,
}

impl Timing {
    /// The delays of the real operator, with a drain of one and a restart of five minutes.
    pub const fn real() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            render_delay: seconds(5),
            status_lag: seconds(5),
            drain: seconds(60),
            apply: seconds(5),
            restart: seconds(300),
        }
    }

    /// Delays for tests on a server: the same order of events, in milliseconds.
    pub const fn short() -> Timing {
        let milliseconds = Duration::from_millis;
        Timing {
            render_delay: milliseconds(100),
            status_lag: milliseconds(50),
            drain: milliseconds(100),
            apply: milliseconds(50),
            restart: milliseconds(200),
        }
    }

    /// Delays for an audience: every step of a node can be seen, and three nodes take a few seconds.
    pub const fn demo() -> Timing {
        let milliseconds = Duration::from_millis;
        Timing {
            render_delay: milliseconds(500),
            status_lag: milliseconds(100),
            drain: milliseconds(400),
            apply: milliseconds(200),
            restart: milliseconds(800),
        }
    }
}

//! How long everything takes.

use std::time::Duration;

/// How long everything takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From a queued job and an idle runner until the job starts there.
    pub assign: Duration,
    /// From an event until its webhook is sent.
    pub webhook: Duration,
    /// From the end of a job until its ephemeral runner is gone.
    pub deregister: Duration,
    /// How long a runner that died is shown as online.
    pub offline: Duration,
    /// How long a job of a runner that died goes on before it fails.
    pub lost: Duration,
    /// From the cancellation of a run until its running jobs ended.
    pub cancel: Duration,
    /// How long a new runner is missing in lists.
    pub list_lag: Duration,
    /// How long an ephemeral runner may be offline before it is removed.
    pub unused: Duration,
    /// How long a poll for messages waits for one.
    pub poll: Duration,
    /// How long a session lives without a request.
    pub session: Duration,
    /// How long the token of a message queue is valid.
    pub queue_token: Duration,
    /// How long the token of the actions service is valid.
    pub service_token: Duration,
    /// How long the token of an installation and a registration token are valid.
    pub token: Duration,
}

impl Timing {
    /// Times like those of the real server.
    pub const fn real() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            assign: seconds(1),
            webhook: seconds(1),
            deregister: seconds(2),
            offline: seconds(50),
            lost: seconds(600),
            cancel: seconds(10),
            list_lag: Duration::ZERO,
            unused: seconds(86_400),
            poll: seconds(50),
            session: seconds(120),
            queue_token: seconds(3600),
            service_token: seconds(3600),
            token: seconds(3600),
        }
    }

    /// Times for tests with a real clock: the same order of events, in milliseconds.
    pub const fn short() -> Timing {
        let milliseconds = Duration::from_millis;
        Timing {
            assign: milliseconds(5),
            webhook: milliseconds(2),
            deregister: milliseconds(10),
            offline: milliseconds(300),
            lost: milliseconds(1000),
            cancel: milliseconds(20),
            poll: milliseconds(2000),
            session: milliseconds(5000),
            ..Timing::real()
        }
    }

    /// Times for an audience.
    pub const fn demo() -> Timing {
        let milliseconds = Duration::from_millis;
        Timing {
            assign: milliseconds(100),
            webhook: milliseconds(50),
            deregister: milliseconds(200),
            offline: milliseconds(2000),
            lost: milliseconds(10_000),
            cancel: milliseconds(500),
            poll: milliseconds(20_000),
            session: milliseconds(30_000),
            ..Timing::real()
        }
    }
}

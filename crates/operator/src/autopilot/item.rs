//! What the engine knows of one object it keeps.

use autopilot::{Decision, Observed, Remembered, Tell};
use change::{Impact, Key, Live};
use serde_json::Value;
use std::time::Duration;

/// The first and the longest wait after a write that failed.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(300));
/// The first wait after a write the server refused: only a change elsewhere can help, so it is not asked often.
const RETRY_REFUSED: Duration = Duration::from_secs(2);

/// One object.
pub(crate) struct Item {
    pub(crate) asset: String,
    pub(crate) order: i64,
    pub(crate) wanted: Value,
    pub(crate) impact: Impact,
    pub(crate) excluded: bool,
    pub(crate) restarts: String,
    pub(crate) live: Seen,
    pub(crate) remembered: Option<Remembered>,
    /// A write is under way: whatever happens meanwhile is looked at afterwards.
    pub(crate) busy: bool,
    pub(crate) failures: u32,
    /// What was said last, so that it is said once.
    pub(crate) said: Option<Tell>,
    /// What is to be said when a write that needed a repair has succeeded.
    pub(crate) owed: Option<Tell>,
}

/// What is known of the live object.
pub(crate) enum Seen {
    /// Nothing yet: nothing is done.
    Unknown,
    /// It does not exist.
    Absent,
    /// It is so.
    Present(Live),
}

impl Item {
    /// One of which nothing is known yet.
    pub(crate) fn new() -> Item {
        Item {
            asset: String::new(),
            order: 0,
            wanted: Value::Null,
            impact: Impact::High,
            excluded: false,
            restarts: String::new(),
            live: Seen::Unknown,
            remembered: None,
            busy: false,
            failures: 0,
            said: None,
            owed: None,
        }
    }

    /// Takes a look that came from a watch or from an answer; an older one than the one we have is no news.
    pub(crate) fn see(&mut self, live: Live) {
        if let Seen::Present(known) = &self.live
            && live.is_older_than(known)
        {
            return;
        }
        self.live = Seen::Present(live);
    }

    /// What is to be done now; `None` while nothing is known.
    pub(crate) fn decide(&self, key: &Key, consent: &autopilot::Consent, now: i64) -> Option<Decision> {
        let live = match &self.live {
            Seen::Unknown => return None,
            Seen::Absent => None,
            Seen::Present(live) => Some(live),
        };
        let observed = Observed {
            key,
            wanted: &self.wanted,
            impact: self.impact,
            live,
            remembered: self.remembered.as_ref(),
            consent,
            excluded: self.excluded,
            restarts: &self.restarts,
        };
        Some(autopilot::decide(&observed, now))
    }

    /// How long to wait after another failure.
    pub(crate) fn wait(&mut self, refused: bool) -> Duration {
        let first = if refused { RETRY_REFUSED } else { RETRY.0 };
        let wait = first.saturating_mul(1 << self.failures.min(16)).min(RETRY.1);
        self.failures += 1;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Seen};
    use change::Live;
    use std::time::Duration;

    #[test]
    fn an_object_the_server_refuses_costs_few_requests_in_its_first_minute() {
        for refused in [true, false] {
            let mut item = Item::new();
            let (mut passed, mut tries) = (Duration::ZERO, 1);
            while passed < Duration::from_secs(60) {
                passed += item.wait(refused);
                tries += 1;
            }
            assert!(tries <= 10, "{tries}");
        }
    }

    #[test]
    fn an_older_look_is_no_news() {
        let live = |version: &str| Live { uid: "u".into(), resource_version: version.into(), ..Live::default() };
        let mut item = Item::new();
        item.see(live("10"));
        item.see(live("9"));
        assert!(matches!(&item.live, Seen::Present(seen) if seen.resource_version == "10"));
        item.see(Live { uid: "v".into(), ..live("9") });
        assert!(matches!(&item.live, Seen::Present(seen) if seen.uid == "v"), "another object of that name is news");
    }
}

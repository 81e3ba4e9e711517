//! What the engine knows of one object it keeps.

use super::platform;
use api::annotation;
use autopilot::{Budget, Cause, Consent, Decision, Inspected, Observed, Parting, Refused, Remembered, Since, Tell};
use change::{Desired, Digest, Impact, Key, Live, PatchableKinds, Reason};
use cluster::act::Guard;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The first and the longest wait after a write that failed.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(300));
/// The first wait after a write the server refused: only a change elsewhere can help, so it is not asked often.
const RETRY_REFUSED: Duration = Duration::from_secs(2);

/// A user's wish, the last good one and what the catalogue wants are three; more are remembered in vain.
const MOST_REFUSED: usize = 4;

/// One object.
pub(crate) struct Item {
    pub(crate) asset: String,
    pub(crate) order: i64,
    pub(crate) wanted: Desired,
    pub(crate) impact: Impact,
    pub(crate) excluded: bool,
    pub(crate) restarts: String,
    /// The fingerprint of its asset.
    pub(crate) source: String,
    /// Why it is to go, if it is.
    pub(crate) parting: Option<Cause>,
    /// Whether it was wanted since we started.
    pub(crate) was_wanted: bool,
    /// Whether it stays when it is not wanted any more.
    pub(crate) stays: bool,
    /// What a look at its content said.
    pub(crate) inspected: Option<Inspected>,
    pub(crate) live: Seen,
    pub(crate) remembered: Option<Remembered>,
    pub(crate) budget: Option<Budget>,
    /// What is left of its budget of creations, once it was deleted.
    pub(crate) deletions: Option<Budget>,
    /// What users had written on it when it was deleted: key and value.
    pub(crate) dropped: Vec<(String, String)>,
    pub(crate) frozen: bool,
    /// What the server refused of it.
    pub(crate) refused: Vec<Refused>,
    /// What the last write that failed wanted.
    pub(crate) failed: Option<Digest>,
    /// A write is under way: whatever happens meanwhile is looked at afterwards.
    pub(crate) busy: bool,
    /// Whether somebody's change of a list's key has to be taken away before it can be applied.
    pub(crate) repair: Repair,
    /// What is to be said when that has succeeded.
    pub(crate) owed: Option<Tell>,
    pub(crate) failures: u32,
    /// After a failure nothing is written before this.
    pub(crate) not_before: Option<Instant>,
    /// When it is looked at again without an event.
    pub(crate) again: Option<Instant>,
    /// Why it was held when that was last said, so that it is said once.
    pub(crate) said: Option<Reason>,
}

/// What the user said that holds for every object.
#[derive(Clone, Copy)]
pub(crate) struct User<'a> {
    pub(crate) consent: &'a Consent,
    /// Sensitive kinds that may be patched after all.
    pub(crate) openings: &'a PatchableKinds,
    /// Whether anything is deleted at all.
    pub(crate) prune: bool,
    /// When the HyperConverged was made, in milliseconds since 1970.
    pub(crate) hco_created: Option<i64>,
}

/// A repair that makes room for an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    /// None is needed, as far as is known.
    None,
    /// The next write is one.
    Due,
    /// It was made, and the apply after it has not been answered yet.
    Done,
}

/// What is known of the live object.
pub(crate) enum Seen {
    /// Nothing yet: nothing is done.
    Unknown,
    /// It does not exist, as of this version.
    Absent(Option<u128>),
    /// It is so.
    Present(Live),
}

impl Item {
    /// One of which nothing is known yet.
    pub(crate) fn new(wanted: Desired) -> Item {
        Item {
            asset: String::new(),
            order: 0,
            wanted,
            impact: Impact::High,
            excluded: false,
            restarts: String::new(),
            source: String::new(),
            parting: None,
            was_wanted: false,
            stays: false,
            inspected: None,
            live: Seen::Unknown,
            remembered: None,
            budget: None,
            deletions: None,
            dropped: Vec::new(),
            frozen: false,
            refused: Vec::new(),
            failed: None,
            busy: false,
            repair: Repair::None,
            owed: None,
            failures: 0,
            not_before: None,
            again: None,
            said: None,
        }
    }

    /// Takes what its asset makes of it now; what was said or tried about something else is forgotten.
    pub(crate) fn want(&mut self, object: &platform::Object, restarts: String) {
        if self.wanted != object.wanted {
            (self.wanted, self.failures, self.not_before) = (object.wanted.clone(), 0, None);
            self.refused.clear();
        }
        if self.parting.take().is_some() {
            // It is wanted again.
            self.owed = None;
        }
        (self.impact, self.restarts) = (object.impact, restarts);
        (self.source, self.stays) = (object.source.clone(), object.stays);
    }

    /// The version of what is known.
    pub(crate) fn version(&self) -> Option<u128> {
        match &self.live {
            Seen::Unknown => None,
            Seen::Absent(since) => *since,
            Seen::Present(known) => known.version(),
        }
    }

    /// Takes a look that came from a watch or from an answer; an older one than the one we have is no news. The answer to a write may
    /// come after the event of what happened next.
    pub(crate) fn see(&mut self, live: Live) {
        if self.version().zip(live.version()).is_none_or(|(known, new)| known <= new) {
            self.live = Seen::Present(live);
        }
    }

    /// Takes that it does not exist in this version; that it did is a deletion.
    pub(crate) fn miss(&mut self, version: Option<u128>, now: i64) {
        if matches!(self.live, Seen::Present(_))
            && self.version().zip(version).is_some_and(|(known, gone)| gone < known)
        {
            return;
        }
        let since = version.or(self.version());
        if let Seen::Present(live) = std::mem::replace(&mut self.live, Seen::Absent(since)) {
            self.deletions.get_or_insert(Budget::full(now));
            let is_theirs = |key: &String| annotation::USERS.contains(&key.as_str());
            self.dropped = live.annotations.into_iter().filter(|(key, _)| is_theirs(key)).collect();
        }
        (self.remembered, self.budget, self.repair) = (None, None, Repair::None);
    }

    /// Nothing is known of it any more, for its kind is gone or watched anew: that it is not there next time is no deletion.
    pub(crate) fn forget(&mut self) {
        (self.live, self.remembered, self.budget, self.repair) = (Seen::Unknown, None, None, Repair::None);
        self.dropped.clear();
    }

    /// Takes what was read of it while this version was known. If nothing came meanwhile it is so, whatever its version: versions go
    /// back when a cluster is restored. Else a watch was faster and knows better.
    pub(crate) fn read(&mut self, known: Option<u128>, live: Option<Live>, now: i64) {
        let is_undisturbed = self.version() == known;
        match live {
            Some(live) if is_undisturbed => self.live = Seen::Present(live),
            Some(live) => self.see(live),
            None if is_undisturbed => self.miss(None, now),
            None => {}
        }
    }

    /// What has to be so for an apply to be made.
    pub(crate) fn guard(&self) -> Guard<'_> {
        match &self.live {
            Seen::Present(live) => Guard::Present(live),
            Seen::Unknown | Seen::Absent(_) => Guard::Absent,
        }
    }

    /// What is to be done now; `None` while nothing is known.
    pub(crate) fn decide(&self, key: &Key, user: User<'_>, now: i64) -> Option<Decision> {
        let live = match &self.live {
            Seen::Unknown => return None,
            Seen::Absent(_) => None,
            Seen::Present(live) => Some(live),
        };
        let Some(cause) = self.parting else { return Some(autopilot::decide(&self.observed(key, live, user), now)) };
        let parting = Parting {
            key,
            cause,
            live,
            impact: self.impact,
            since: (!self.was_wanted).then_some(Since { source: &self.source, hco_created: user.hco_created }),
            stays: self.stays,
            prune: user.prune,
            frozen: self.frozen,
            excluded: self.excluded,
            consent: user.consent,
            restarts: &self.restarts,
        };
        Some(autopilot::part(&parting, now))
    }

    /// Whether it is gone, or none of ours any more.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.live {
            Seen::Unknown => false,
            Seen::Absent(_) => true,
            Seen::Present(live) => !live.labelled && live.deleting.is_none(),
        }
    }

    /// Takes a look at its content.
    pub(crate) fn inspect(&mut self, key: &Key, user: User<'_>, content: &Value) {
        let Seen::Present(live) = &self.live else { return };
        self.inspected = autopilot::inspect(&self.observed(key, Some(live), user), content);
    }

    fn observed<'a>(&'a self, key: &'a Key, live: Option<&'a Live>, user: User<'a>) -> Observed<'a> {
        Observed {
            key,
            wanted: &self.wanted,
            impact: self.impact,
            live,
            remembered: self.remembered.as_ref(),
            budget: self.budget,
            refused: &self.refused,
            deletions: self.deletions,
            dropped: &self.dropped,
            frozen: self.frozen,
            consent: user.consent,
            openings: user.openings,
            excluded: self.excluded,
            restarts: &self.restarts,
            source: &self.source,
            inspected: self.inspected.as_ref(),
        }
    }

    /// Remembers what the server refused, as far as it is worth it.
    pub(crate) fn refuse(&mut self, refused: Refused) {
        self.refused.retain(|earlier| earlier.digest != refused.digest);
        self.refused.push(refused);
        if self.refused.len() > MOST_REFUSED {
            self.refused.remove(0);
        }
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
    use change::{Desired, Live};
    use serde_json::json;
    use std::time::Duration;

    fn item() -> Item {
        Item::new(Desired::of(&json!({})))
    }

    #[test]
    fn an_object_the_server_refuses_costs_few_requests_in_its_first_minute() {
        for refused in [true, false] {
            let mut item = item();
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
        let mut item = item();
        item.see(live("10"));
        item.see(live("9"));
        assert!(matches!(&item.live, Seen::Present(seen) if seen.resource_version == "10"));
        item.miss(Some(12), 0);
        item.see(live("11"));
        assert!(matches!(&item.live, Seen::Absent(_)), "the answer to a write comes after the event of its end");
        item.see(live("13"));
        assert!(matches!(&item.live, Seen::Present(_)));
        item.miss(Some(12), 0);
        assert!(matches!(&item.live, Seen::Present(_)), "an old end is none");
        item.read(Some(11), Some(live("12")), 0);
        item.read(Some(11), None, 0);
        assert!(matches!(&item.live, Seen::Present(seen) if seen.resource_version == "13"), "a watch was faster");
        item.read(Some(13), Some(live("5")), 0);
        assert!(matches!(&item.live, Seen::Present(seen) if seen.resource_version == "5"), "what was read is so");
    }
}

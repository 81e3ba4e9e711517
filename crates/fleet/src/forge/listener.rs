//! What the listener of a scale set does next: it opens the only session, takes it over when another listener has stopped, waits for messages,
//! acquires jobs before it acknowledges their message, and asks again on a new connection if an answer does not come.

use super::{Failure, Message, ScaleSetEventKind, Session, SessionId, Statistics};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long GitHub keeps a poll without a message.
pub const POLL: Duration = Duration::from_secs(50);
/// An answer that is so much later does not come any more.
pub const POLL_MARGIN: Duration = Duration::from_secs(20);
/// A session of another listener ends about two minutes after its last poll.
const TAKEN: Duration = Duration::from_secs(15);
/// The pause after the first failure, which doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// The watchdog: when a poll that began at a moment is given up, so that the next one has a new connection.
pub fn give_up_at(asked: Timestamp, poll: Duration, margin: Duration) -> Timestamp {
    asked + poll + margin
}

/// A listener of one scale set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listener {
    session: Option<SessionId>,
    /// The last message that was received.
    last: u64,
    /// Messages that are not acknowledged yet, with what they offer. One with an offer that waits for room stays: a successor needs it.
    open: BTreeMap<u64, BTreeSet<u64>>,
    /// Jobs that were offered and not acquired yet.
    offers: BTreeSet<u64>,
    /// How the scale set stood last.
    statistics: Option<Statistics>,
    failures: u32,
    not_before: Option<Timestamp>,
    taken_since: Option<Timestamp>,
    /// When the platform answered last.
    heard: Option<Timestamp>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this moment.
    Wait(Timestamp),
    /// Open a session.
    Open,
    /// Acquire these jobs.
    Acquire(SessionId, Vec<u64>),
    /// Acknowledge this message. What it says has to be recorded before.
    Acknowledge(SessionId, u64),
    /// Wait for the message after this one.
    Poll(SessionId, u64),
}

impl Listener {
    /// What to do next, if these jobs may be acquired.
    pub fn next(&self, now: Timestamp, granted: &BTreeSet<u64>) -> Step {
        if let Some(until) = self.not_before.filter(|until| now < *until) {
            return Step::Wait(until);
        }
        let Some(session) = self.session.clone() else { return Step::Open };
        // Before the acknowledgement: a message comes again, a job that nobody acquired does not.
        let wanted: Vec<u64> = self.offers.intersection(granted).copied().collect();
        if !wanted.is_empty() {
            return Step::Acquire(session, wanted);
        }
        match self.settled() {
            Some(message) => Step::Acknowledge(session, message),
            None => Step::Poll(session, self.last),
        }
    }

    /// A session was opened.
    pub fn opened(&mut self, session: &Session, now: Timestamp) {
        // A service that opens sessions and loses them at once is still failing: only a poll shows that it works.
        let failures = self.failures;
        *self = Listener { session: Some(session.id.clone()), failures, ..Listener::default() };
        (self.statistics, self.heard) = (Some(session.statistics), Some(now));
    }

    /// A poll ended, with a message or without.
    pub fn polled(&mut self, message: Option<&Message>, now: Timestamp) {
        self.went_well(now);
        let Some(message) = message else { return };
        (self.last, self.statistics) = (message.id, Some(message.statistics));
        let offered = message.events.iter().filter(|event| event.kind == ScaleSetEventKind::Available);
        self.open.insert(message.id, offered.map(|event| event.request).collect());
        for event in &message.events {
            match event.kind {
                ScaleSetEventKind::Available => self.offers.insert(event.request),
                // Whatever became of it, it cannot be acquired any more.
                _ => self.offers.remove(&event.request),
            };
        }
    }

    /// Jobs were acquired; those that others have are not offered any more.
    pub fn acquired(&mut self, asked: &[u64], now: Timestamp) {
        self.went_well(now);
        self.offers.retain(|request| !asked.contains(request));
    }

    /// The message was acknowledged.
    pub fn acknowledged(&mut self, now: Timestamp) {
        self.went_well(now);
        if let Some(message) = self.settled() {
            self.open.remove(&message);
        }
    }

    /// A step failed.
    pub fn failed(&mut self, failure: &Failure, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        let doubled = FIRST.saturating_mul(1_u32 << (self.failures - 1).min(10)).min(LONGEST);
        self.not_before = Some(match failure {
            Failure::RateLimited { until, .. } => *until,
            Failure::Taken(_) => {
                self.heard = Some(now);
                self.taken_since.get_or_insert(now);
                now + TAKEN
            }
            Failure::SessionLost(_) => {
                // What was not acknowledged, and offers, are in the session after it.
                let heard = self.heard;
                *self = Listener { statistics: self.statistics, failures: self.failures, heard, ..Listener::default() };
                // The first time at once; a service that loses every session is not asked in a loop.
                if self.failures == 1 { now } else { now + doubled }
            }
            Failure::Configuration { .. } | Failure::Permanent(_) => now + LONGEST,
            _ => now + doubled,
        });
    }

    /// The session, if it is open.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// Jobs that were offered and not acquired yet.
    pub fn offers(&self) -> &BTreeSet<u64> {
        &self.offers
    }

    /// How the scale set stood last, if anything is known.
    pub fn statistics(&self) -> Option<Statistics> {
        self.statistics
    }

    /// Since when another listener has the session.
    pub fn taken_since(&self) -> Option<Timestamp> {
        self.taken_since
    }

    /// Whether nothing was heard for so long that jobs may wait unseen: the queue has to be read in another way.
    pub fn is_deaf(&self, started: Timestamp, now: Timestamp) -> bool {
        now > give_up_at(self.heard.unwrap_or(started), POLL.saturating_mul(2), POLL_MARGIN)
    }

    /// The first message that nobody needs any more.
    fn settled(&self) -> Option<u64> {
        self.open.iter().find(|(_, offered)| offered.is_disjoint(&self.offers)).map(|(message, _)| *message)
    }

    fn went_well(&mut self, now: Timestamp) {
        (self.failures, self.not_before, self.heard) = (0, None, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::{Listener, POLL, POLL_MARGIN, Step, give_up_at};
    use crate::forge::{
        Failure, Message, RepositoryName, ScaleSetEvent, ScaleSetEventKind, Session, SessionId, Statistics,
    };
    use jiff::Timestamp;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    /// As if there were room for everything.
    fn all() -> BTreeSet<u64> {
        (0..100).collect()
    }

    fn id(text: &str) -> SessionId {
        SessionId(text.into())
    }

    fn open(name: &str, now: Timestamp) -> Listener {
        let mut listener = Listener::default();
        assert_eq!(listener.next(now, &all()), Step::Open);
        listener.opened(&Session { id: id(name), statistics: Statistics::default() }, now);
        listener
    }

    fn message(number: u64, events: &[(u64, ScaleSetEventKind)]) -> Message {
        let repository = RepositoryName { owner: "acme".into(), name: "shop".into() };
        let event = |(request, kind): &(u64, ScaleSetEventKind)| ScaleSetEvent {
            kind: kind.clone(),
            request: *request,
            repository: repository.clone(),
            name: "build".into(),
            run: 1,
            labels: ["pve".to_owned()].into(),
        };
        let statistics = Statistics { available: 3, ..Statistics::default() };
        Message { id: number, events: events.iter().map(event).collect(), statistics }
    }

    #[test]
    fn jobs_are_acquired_before_their_message_is_acknowledged_and_never_more_than_can_run() {
        let (mut listener, none) = (open("a", at(0)), BTreeSet::new());
        assert_eq!(listener.next(at(0), &all()), Step::Poll(id("a"), 0));
        let offered: Vec<_> = (1..=3).map(|request| (request, ScaleSetEventKind::Available)).collect();
        listener.polled(Some(&message(7, &offered)), at(1));
        assert_eq!(listener.next(at(1), &[1, 2].into()), Step::Acquire(id("a"), vec![1, 2]));
        listener.acquired(&[1, 2], at(1));
        assert_eq!(
            listener.next(at(1), &none),
            Step::Poll(id("a"), 7),
            "the third one waits for room, and a successor hears of it by the same message"
        );
        assert_eq!(
            listener.next(at(2), &all()),
            Step::Acquire(id("a"), vec![3]),
            "when there is room it is still known"
        );
        listener.polled(Some(&message(8, &[(3, ScaleSetEventKind::Completed("canceled".into(), None))])), at(3));
        for message in [7, 8] {
            let what = "a job that was cancelled is not acquired";
            assert_eq!(listener.next(at(3), &all()), Step::Acknowledge(id("a"), message), "{what}");
            listener.acknowledged(at(3));
        }
        assert_eq!(listener.next(at(3), &all()), Step::Poll(id("a"), 8));
        assert_eq!(listener.statistics().map(|found| found.available), Some(3));
    }

    #[test]
    fn a_session_of_another_listener_is_waited_for_and_a_lost_one_is_opened_again() {
        let mut listener = Listener::default();
        for second in [0, 15, 30] {
            assert_eq!(listener.next(at(second), &all()), Step::Open);
            listener.failed(&Failure::Taken("another listener".into()), at(second));
            assert_eq!(listener.next(at(second), &all()), Step::Wait(at(second + 15)));
        }
        assert_eq!(listener.taken_since(), Some(at(0)));
        listener.opened(&Session { id: id("b"), statistics: Statistics::default() }, at(45));
        assert_eq!(listener.taken_since(), None);
        listener.polled(Some(&message(7, &[(1, ScaleSetEventKind::Available)])), at(46));
        listener.failed(&Failure::SessionLost("over".into()), at(47));
        assert_eq!(listener.next(at(47), &all()), Step::Open, "at once, and what was offered is offered again");
        listener.opened(&Session { id: id("c"), statistics: Statistics::default() }, at(47));
        listener.failed(&Failure::SessionLost("over".into()), at(47));
        assert_eq!(listener.next(at(47), &all()), Step::Wait(at(49)), "sessions that are lost at once are no loop");
    }

    #[test]
    fn a_poll_that_fails_is_repeated_in_its_session_with_growing_pauses() {
        let mut listener = open("a", at(0));
        let mut now = at(0);
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            listener.failed(&Failure::Transient("no answer".into()), now);
            let until = now + Duration::from_secs(pause);
            assert_eq!(listener.next(now, &all()), Step::Wait(until));
            now = until;
        }
        assert_eq!(listener.next(now, &all()), Step::Poll(id("a"), 0));
        assert!(listener.is_deaf(at(0), now), "nothing was heard for minutes");
        listener.polled(None, now);
        assert!(!listener.is_deaf(at(0), now));
        listener.failed(&Failure::RateLimited { message: "pause".into(), until: at(900) }, now);
        assert_eq!(listener.next(now, &all()), Step::Wait(at(900)));
    }

    #[test]
    fn an_answer_that_does_not_come_is_given_up_after_its_time() {
        assert_eq!(give_up_at(at(0), POLL, POLL_MARGIN), at(70));
        let listener = Listener::default();
        assert!(!listener.is_deaf(at(0), at(120)) && listener.is_deaf(at(0), at(121)));
    }
}

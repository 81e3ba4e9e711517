//! Whether a request may be sent now, so that the limits of a CI platform are never exceeded: requests per hour as the platform counts them, points
//! per minute as it documents them, requests at once, and the pauses that it asks for. What cannot wait goes first.

use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Points are counted by the minute.
const MINUTE: Duration = Duration::from_secs(60);
/// A pause without a length lasts at least a minute, and doubles each time.
const LONGEST_PAUSE: Duration = Duration::from_secs(900);
/// Moments of the platform are whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);

/// What goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A runner is registered or removed, or a token is needed for that: a machine waits.
    Urgent,
    /// Something about one thing.
    Normal,
    /// A list.
    Bulk,
}

/// What is allowed whatever the platform says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight. GitHub refuses more than 100 of all clients together.
    pub concurrent: usize,
    /// Points in a minute: a read costs one, everything else five. GitHub allows 900.
    pub points: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { concurrent: 20, points: 800 }
    }
}

/// The budget of one account.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Limits,
    window: Window,
    /// Requests without an answer: they may have been counted.
    lost: u64,
    /// The points of requests in flight.
    in_flight: BTreeMap<u64, u32>,
    /// When requests ended, and their points.
    ended: VecDeque<(Timestamp, u32)>,
    paused_until: Option<Timestamp>,
    /// Pauses in a row.
    pauses: u32,
    waiting: BTreeSet<Place>,
    next: u64,
}

/// What is known of the requests per hour.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Window {
    /// Nothing yet: one request finds out.
    Unknown,
    /// The platform counts none.
    Unlimited,
    Known {
        limit: u64,
        /// The least that an answer said in this window.
        lowest: u64,
        /// When it ends; nothing if it has begun by our clock only.
        reset: Option<Timestamp>,
        /// When the one before ended: answers about that one come late.
        after: Option<Timestamp>,
    },
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    priority: Priority,
    number: u64,
}

/// A request that may be sent. How it ended has to be reported.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Whether a request may be sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Now.
    Go(Ticket),
    /// When another request has ended.
    Wait,
    /// Not before this moment.
    Limited {
        /// The moment.
        until: Timestamp,
        /// Which limit, for people.
        why: &'static str,
    },
}

/// What an answer says about limits. Moments are those of our clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meter {
    /// The HTTP status.
    pub status: u16,
    /// Requests in an hour, those that are left, and when the hour ends.
    pub core: Option<Core>,
    /// How long to wait.
    pub retry_after: Option<Duration>,
    /// Whether its text is that of a secondary limit.
    pub is_secondary: bool,
}

/// Requests in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// How many there are.
    pub limit: u64,
    /// How many are left.
    pub remaining: u64,
    /// When the hour ends.
    pub reset: Timestamp,
}

impl Budget {
    /// A budget that nothing is known of.
    pub fn new(limits: Limits) -> Budget {
        Budget {
            limits,
            window: Window::Unknown,
            lost: 0,
            in_flight: BTreeMap::new(),
            ended: VecDeque::new(),
            paused_until: None,
            pauses: 0,
            waiting: BTreeSet::new(),
            next: 0,
        }
    }

    /// Takes a place in the queue, which has to be left by [`Budget::leave`] or by a verdict to go.
    pub fn enter(&mut self, priority: Priority) -> Place {
        self.next += 1;
        let place = Place { priority, number: self.next };
        self.waiting.insert(place);
        place
    }

    /// Leaves the queue without a request.
    pub fn leave(&mut self, place: Place) {
        self.waiting.remove(&place);
    }

    /// Whether the request of a place may be sent now.
    pub fn admit(&mut self, place: Place, is_write: bool, now: Timestamp) -> Verdict {
        self.roll(now);
        if let Some(until) = self.paused_until {
            return Verdict::Limited { until, why: "it asked for a pause (secondary rate limit)" };
        }
        if self.waiting.first().is_some_and(|first| *first < place) {
            return Verdict::Wait;
        }
        let points = if is_write { 5 } else { 1 };
        let verdict = self.concurrency(place.priority);
        let verdict = verdict.or_else(|| self.requests(place.priority));
        match verdict.or_else(|| self.points(place.priority, points)) {
            Some(verdict) => verdict,
            None => {
                self.waiting.remove(&place);
                self.in_flight.insert(place.number, points);
                Verdict::Go(Ticket(place.number))
            }
        }
    }

    fn concurrency(&self, priority: Priority) -> Option<Verdict> {
        let most = match priority {
            Priority::Urgent => self.limits.concurrent,
            Priority::Normal => self.limits.concurrent * 3 / 4,
            Priority::Bulk => self.limits.concurrent / 2,
        };
        let most = if self.window == Window::Unknown { 1 } else { most.max(1) };
        (self.in_flight.len() >= most).then_some(Verdict::Wait)
    }

    /// Every answer says how many requests were left when it was made. Of those in flight nobody knows whether they are counted already.
    fn requests(&self, priority: Priority) -> Option<Verdict> {
        let Window::Known { limit, lowest, reset, .. } = &self.window else { return None };
        let reserve = match priority {
            Priority::Urgent => 0,
            Priority::Normal => limit / 50,
            Priority::Bulk => limit / 10,
        };
        let left = lowest.saturating_sub(self.lost);
        if left.saturating_sub(self.in_flight.len() as u64) > reserve {
            return None;
        }
        match reset {
            Some(reset) if left <= reserve => {
                let why = "no requests are left in this hour (x-ratelimit-remaining)";
                Some(Verdict::Limited { until: *reset + ROUNDING, why })
            }
            // Answers that say that nothing has changed cost nothing.
            _ if !self.in_flight.is_empty() => Some(Verdict::Wait),
            _ => None,
        }
    }

    fn points(&self, priority: Priority, points: u32) -> Option<Verdict> {
        let most = match priority {
            Priority::Urgent => self.limits.points,
            Priority::Normal => self.limits.points / 6 * 5,
            Priority::Bulk => self.limits.points / 3 * 2,
        };
        let in_flight: u32 = self.in_flight.values().sum();
        let mut used = in_flight + self.ended.iter().map(|(_, points)| points).sum::<u32>();
        if used + points <= most {
            return None;
        }
        for (at, ended) in &self.ended {
            used -= ended;
            if used + points <= most {
                return Some(Verdict::Limited { until: *at + MINUTE, why: "too many requests in this minute" });
            }
        }
        (in_flight > 0).then_some(Verdict::Wait)
    }

    /// An answer came. When it may be asked again, if it was refused because of a limit.
    pub fn answered(&mut self, ticket: &Ticket, meter: &Meter, now: Timestamp) -> Option<Timestamp> {
        self.end(ticket, now);
        match (meter.core, &self.window) {
            (Some(core), _) => self.learn(core),
            (None, Window::Unknown) if meter.status < 400 => self.window = Window::Unlimited,
            (None, _) => {}
        }
        let is_exhausted = meter.core.is_some_and(|core| core.remaining == 0);
        let is_refused = matches!(meter.status, 403 | 429);
        if let Some(pause) = meter.retry_after.filter(|_| meter.status >= 400) {
            self.pause(now + pause);
        } else if is_refused && is_exhausted {
            return meter.core.map(|core| core.reset + ROUNDING);
        } else if (is_refused && meter.is_secondary) || meter.status == 429 {
            let pause = MINUTE.saturating_mul(1_u32 << self.pauses.min(6)).min(LONGEST_PAUSE);
            self.pause(now + pause);
        } else {
            self.pauses = 0;
            return None;
        }
        self.paused_until.filter(|_| is_refused)
    }

    /// No answer came: it may have been counted.
    pub fn lost(&mut self, ticket: &Ticket, now: Timestamp) {
        self.end(ticket, now);
        self.lost += 1;
    }

    /// It was not sent after all.
    pub fn unsent(&mut self, ticket: &Ticket) {
        self.in_flight.remove(&ticket.0);
    }

    /// How many requests an hour has and how many are left, if that is known and limited.
    pub fn left(&self) -> Option<(u64, u64)> {
        match &self.window {
            Window::Known { limit, lowest, .. } => {
                Some((*limit, lowest.saturating_sub(self.lost + self.in_flight.len() as u64)))
            }
            _ => None,
        }
    }

    fn end(&mut self, ticket: &Ticket, now: Timestamp) {
        if let Some(points) = self.in_flight.remove(&ticket.0) {
            self.ended.push_back((now, points));
        }
    }

    fn pause(&mut self, until: Timestamp) {
        self.pauses = self.pauses.saturating_add(1);
        self.paused_until = self.paused_until.max(Some(until + ROUNDING));
    }

    fn learn(&mut self, core: Core) {
        let Core { limit, remaining, reset: new } = core;
        let known = match &mut self.window {
            Window::Known { lowest, reset, after, .. } => Some((lowest, reset, after)),
            _ => None,
        };
        match known {
            // Of the hour before.
            Some((_, _, Some(after))) if new <= *after + ROUNDING => {}
            Some((lowest, Some(reset), _)) if new <= *reset + ROUNDING => {
                if new + ROUNDING >= *reset {
                    *lowest = remaining.min(*lowest);
                }
            }
            Some((lowest, reset @ None, _)) => {
                *lowest = remaining.min(*lowest);
                *reset = Some(new);
            }
            Some((_, reset, _)) => {
                let after = *reset;
                self.lost = 0;
                self.window = Window::Known { limit, lowest: remaining, reset: Some(new), after };
            }
            None => self.window = Window::Known { limit, lowest: remaining, reset: Some(new), after: None },
        }
    }

    fn roll(&mut self, now: Timestamp) {
        self.paused_until = self.paused_until.filter(|until| now < *until);
        while self.ended.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            self.ended.pop_front();
        }
        if let Window::Known { limit, reset: Some(reset), .. } = self.window
            && reset + ROUNDING <= now
        {
            self.lost = 0;
            self.window = Window::Known { limit, lowest: limit, reset: None, after: Some(reset) };
        }
    }
}

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
/// What requests are counted as unless the platform says otherwise.
pub const CORE: &str = "core";
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
    /// By what the platform counts as, such as `core`: registrations of runners have an hour of their own.
    hours: BTreeMap<String, Hour>,
    /// The points of requests in flight, and what they count as.
    in_flight: BTreeMap<u64, (u32, String)>,
    /// When requests ended, and their points.
    ended: VecDeque<(Timestamp, u32)>,
    paused_until: Option<Timestamp>,
    /// Pauses in a row.
    pauses: u32,
    waiting: BTreeSet<Place>,
    next: u64,
}

/// The requests of an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Hour {
    window: Window,
    in_flight: u64,
    /// Requests without an answer: they may have been counted.
    lost: u64,
}

/// What is known of the requests per hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Window {
    /// Nothing yet: one request finds out.
    #[default]
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
    pub hour: Option<Left>,
    /// What it counted as, if it says that.
    pub resource: Option<String>,
    /// How long to wait.
    pub retry_after: Option<Duration>,
    /// Whether its text is that of a secondary limit.
    pub is_secondary: bool,
}

/// Requests in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
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
            hours: BTreeMap::new(),
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

    /// Whether the request of a place, which counts as this, may be sent now.
    pub fn admit(&mut self, place: Place, is_write: bool, resource: &str, now: Timestamp) -> Verdict {
        self.roll(now);
        if let Some(until) = self.paused_until {
            return Verdict::Limited { until, why: "it asked for a pause (secondary rate limit)" };
        }
        if self.waiting.first().is_some_and(|first| *first < place) {
            return Verdict::Wait;
        }
        let points = if is_write { 5 } else { 1 };
        let hour = self.hours.entry(resource.to_owned()).or_default().clone();
        let verdict = self.concurrency(&hour, place.priority);
        let verdict = verdict.or_else(|| hour.verdict(place.priority));
        match verdict.or_else(|| self.points(place.priority, points)) {
            Some(verdict) => verdict,
            None => {
                self.waiting.remove(&place);
                self.in_flight.insert(place.number, (points, resource.to_owned()));
                self.hours.entry(resource.to_owned()).or_default().in_flight += 1;
                Verdict::Go(Ticket(place.number))
            }
        }
    }

    fn concurrency(&self, hour: &Hour, priority: Priority) -> Option<Verdict> {
        let most = match priority {
            Priority::Urgent => self.limits.concurrent,
            Priority::Normal => self.limits.concurrent * 3 / 4,
            Priority::Bulk => self.limits.concurrent / 2,
        };
        let is_probed = hour.window == Window::Unknown && hour.in_flight > 0;
        (is_probed || self.in_flight.len() >= most.max(1)).then_some(Verdict::Wait)
    }

    fn points(&self, priority: Priority, points: u32) -> Option<Verdict> {
        let most = match priority {
            Priority::Urgent => self.limits.points,
            Priority::Normal => self.limits.points / 6 * 5,
            Priority::Bulk => self.limits.points / 3 * 2,
        };
        let in_flight: u32 = self.in_flight.values().map(|(points, _)| points).sum();
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
        let asked = self.end(ticket, now);
        let resource = meter.resource.clone().or(asked).unwrap_or_else(|| CORE.to_owned());
        let hour = self.hours.entry(resource).or_default();
        match (meter.hour, &hour.window) {
            (Some(left), _) => hour.learn(left),
            (None, Window::Unknown) if meter.status < 400 => hour.window = Window::Unlimited,
            (None, _) => {}
        }
        let is_exhausted = meter.hour.is_some_and(|left| left.remaining == 0);
        let is_refused = matches!(meter.status, 403 | 429);
        if let Some(pause) = meter.retry_after.filter(|_| meter.status >= 400) {
            self.pause(now + pause);
        } else if is_refused && is_exhausted {
            return meter.hour.map(|left| left.reset + ROUNDING);
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
        if let Some(resource) = self.end(ticket, now) {
            self.hours.entry(resource).or_default().lost += 1;
        }
    }

    /// It was not sent after all.
    pub fn unsent(&mut self, ticket: &Ticket) {
        self.land(ticket);
    }

    /// How many requests an hour has and how many are left, if that is known and limited.
    pub fn left(&self) -> Option<(u64, u64)> {
        let hour = self.hours.get(CORE)?;
        match &hour.window {
            Window::Known { limit, lowest, .. } => Some((*limit, lowest.saturating_sub(hour.lost + hour.in_flight))),
            _ => None,
        }
    }

    /// When the hour ends, if that is known.
    pub fn reset(&self) -> Option<Timestamp> {
        match &self.hours.get(CORE)?.window {
            Window::Known { reset, .. } => *reset,
            _ => None,
        }
    }

    /// A request is over; what it was to count as.
    fn end(&mut self, ticket: &Ticket, now: Timestamp) -> Option<String> {
        let (points, resource) = self.land(ticket)?;
        self.ended.push_back((now, points));
        Some(resource)
    }

    fn land(&mut self, ticket: &Ticket) -> Option<(u32, String)> {
        let (points, resource) = self.in_flight.remove(&ticket.0)?;
        let hour = self.hours.entry(resource.clone()).or_default();
        hour.in_flight = hour.in_flight.saturating_sub(1);
        Some((points, resource))
    }

    fn pause(&mut self, until: Timestamp) {
        self.pauses = self.pauses.saturating_add(1);
        self.paused_until = self.paused_until.max(Some(until + ROUNDING));
    }

    fn roll(&mut self, now: Timestamp) {
        self.paused_until = self.paused_until.filter(|until| now < *until);
        while self.ended.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            self.ended.pop_front();
        }
        self.hours.values_mut().for_each(|hour| hour.roll(now));
    }
}

impl Hour {
    /// Every answer says how many requests were left when it was made. Of those in flight nobody knows whether they are counted already.
    fn verdict(&self, priority: Priority) -> Option<Verdict> {
        let Window::Known { limit, lowest, reset, .. } = &self.window else { return None };
        let reserve = match priority {
            Priority::Urgent => 0,
            Priority::Normal => limit / 50,
            Priority::Bulk => limit / 10,
        };
        let left = lowest.saturating_sub(self.lost);
        if left.saturating_sub(self.in_flight) > reserve {
            return None;
        }
        match reset {
            Some(reset) if left <= reserve => {
                let why = "no requests are left in this hour (x-ratelimit-remaining)";
                Some(Verdict::Limited { until: *reset + ROUNDING, why })
            }
            // Answers that say that nothing has changed cost nothing.
            _ if self.in_flight > 0 => Some(Verdict::Wait),
            _ => None,
        }
    }

    fn learn(&mut self, left: Left) {
        let Left { limit, remaining, reset: new } = left;
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

    /// Begins another hour, if this one has ended.
    fn roll(&mut self, now: Timestamp) {
        if let Window::Known { limit, reset: Some(reset), .. } = self.window
            && reset + ROUNDING <= now
        {
            self.lost = 0;
            self.window = Window::Known { limit, lowest: limit, reset: None, after: Some(reset) };
        }
    }
}

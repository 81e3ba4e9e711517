//! Which deliveries of our webhook failed and are to be made again, and when to find out. GitHub repeats none by itself.
//!
//! A poll finds every job that a lost webhook was about; this only makes it quicker. So it gives up early, and never uses what polls and
//! runners need of the limit of requests.

use super::budget::{Allowance, Purpose};
use super::webhook;
use crate::forge::{Ask, Delivery, Hook};
use change::{Moment, Now};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often deliveries are listed while jobs are open or one has failed, and otherwise.
const LIST: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(600));
/// What a first list looks back: of older events a poll knows.
const LOOK_BACK: Duration = Duration::from_secs(3600);
/// A delivery is listed a moment after it was sent, and in no certain order.
const OVERLAP: Duration = Duration::from_secs(120);
/// The pauses between attempts for one event. After the last one it is left to polls.
const PAUSES: [Duration; 3] = [Duration::from_secs(60), Duration::from_secs(300), Duration::from_secs(900)];
/// The most redeliveries at a time.
const MOST_AT_ONCE: usize = 20;
/// The most events that are remembered.
const MOST_KNOWN: usize = 2_000;
/// What a list may cost: pages of a hundred deliveries each.
const PAGES: u32 = 3;

/// The deliveries of one webhook.
#[derive(Debug)]
pub struct Redelivery {
    hook: Hook,
    /// The newest delivery that was listed.
    newest: Option<Timestamp>,
    next_list: Moment,
    is_listing: bool,
    /// Whether the newest delivery that was listed was accepted. If not, one is tried at a time: the receiver is not reachable.
    is_reachable: bool,
    /// Events that were not accepted, by the id that all deliveries of one have.
    failed: BTreeMap<String, Failed>,
    /// Events that were accepted, or are given up.
    settled: BTreeMap<String, Timestamp>,
    given_up: u64,
}

/// An event that was not accepted.
#[derive(Debug, Clone, Copy)]
struct Failed {
    /// The first delivery: a redelivery of it is one, too.
    delivery: u64,
    at: Timestamp,
    /// What a job waits for comes first.
    is_queued: bool,
    attempts: usize,
    next: Moment,
}

impl Redelivery {
    /// Nothing is known of this webhook yet. Only our own is to be given here.
    pub fn new(hook: Hook) -> Redelivery {
        Redelivery {
            hook,
            newest: None,
            next_list: Moment::default(),
            is_listing: false,
            is_reachable: true,
            failed: BTreeMap::new(),
            settled: BTreeMap::new(),
            given_up: 0,
        }
    }

    /// What to ask now: a list, or redeliveries. `is_active` while jobs are open. Call it again at [`Redelivery::wake`].
    pub fn decide(&mut self, is_active: bool, allowance: &mut Allowance, now: Now) -> Vec<Ask> {
        let mut asks = Vec::new();
        if is_active || !self.failed.is_empty() {
            self.next_list = self.next_list.min(now.monotonic.after(LIST.0));
        }
        if !self.is_listing
            && self.next_list <= now.monotonic
            && allowance.admit(Purpose::Poll, PAGES, now.wall).is_ok()
        {
            let is_hurried = is_active || !self.failed.is_empty();
            self.is_listing = true;
            self.next_list = now.monotonic.after(if is_hurried { LIST.0 } else { LIST.1 });
            asks.push(Ask::Deliveries { hook: self.hook, since: self.since(now.wall) });
        }
        asks.extend(self.redeliver(allowance, now));
        asks
    }

    /// When to decide again.
    pub fn wake(&self) -> Moment {
        self.failed.values().map(|failed| failed.next).fold(self.next_list, Moment::min)
    }

    /// The list that was asked for.
    pub fn listed(&mut self, deliveries: &[Delivery], now: Now) {
        self.is_listing = false;
        let Some(newest) = deliveries.iter().max_by_key(|delivery| (delivery.at, delivery.id)) else { return };
        self.newest = self.newest.max(Some(newest.at));
        self.is_reachable = newest.is_accepted;
        for delivery in deliveries.iter().filter(|delivery| delivery.is_accepted) {
            self.failed.remove(&delivery.guid);
            self.settled.insert(delivery.guid.clone(), delivery.at);
        }
        let refused: BTreeSet<&str> = deliveries
            .iter()
            .filter(|delivery| !delivery.is_accepted && delivery.event.0 == "workflow_job")
            .map(|delivery| delivery.guid.as_str())
            .filter(|guid| !self.settled.contains_key(*guid))
            .collect();
        for guid in refused {
            let of_event = deliveries.iter().filter(|delivery| delivery.guid == guid);
            let attempts = of_event.clone().filter(|delivery| delivery.is_redelivery).count();
            let Some(first) = of_event.min_by_key(|delivery| (delivery.at, delivery.id)) else { continue };
            // An earlier process has tried it; it goes on where that one was.
            let next = match attempts.checked_sub(1).map(|last| PAUSES.get(last)) {
                None => now.monotonic,
                Some(Some(pause)) => now.monotonic.after(*pause),
                Some(None) if self.failed.contains_key(guid) => continue,
                Some(None) => {
                    self.settled.insert(guid.to_owned(), first.at);
                    self.given_up += 1;
                    continue;
                }
            };
            self.failed.entry(guid.to_owned()).or_insert(Failed {
                delivery: first.id,
                at: first.at,
                is_queued: first.event.1.as_deref() == Some("queued"),
                attempts,
                next,
            });
        }
        self.prune(now.wall);
    }

    /// The list that was asked for did not come.
    pub fn not_listed(&mut self, now: Now) {
        self.is_listing = false;
        self.next_list = self.next_list.max(now.monotonic.after(LIST.0));
    }

    /// How many events were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The moment from which deliveries are listed.
    fn since(&self, now: Timestamp) -> Timestamp {
        let first = earlier(now, LOOK_BACK);
        self.newest.map_or(first, |newest| earlier(newest, OVERLAP).max(earlier(now, webhook::MAX_AGE)))
    }

    fn redeliver(&mut self, allowance: &mut Allowance, now: Now) -> Vec<Ask> {
        self.prune(now.wall);
        let mut due: Vec<(String, Failed)> = self
            .failed
            .iter()
            .filter(|(_, failed)| failed.next <= now.monotonic)
            // A list that is on its way may show that the last attempt has arrived.
            .filter(|(_, failed)| failed.attempts == 0 || !self.is_listing)
            .map(|(guid, failed)| (guid.clone(), *failed))
            .collect();
        due.sort_by_key(|(_, failed)| (!failed.is_queued, failed.at));
        let most = if self.is_reachable { MOST_AT_ONCE } else { 1 };
        let mut asks = Vec::new();
        for (guid, failed) in due.into_iter().take(most) {
            if allowance.admit(Purpose::Poll, 1, now.wall).is_err() {
                break;
            }
            asks.push(Ask::Redeliver { hook: self.hook, delivery: failed.delivery });
            match PAUSES.get(failed.attempts) {
                Some(pause) => {
                    let next = now.monotonic.after(*pause);
                    self.failed.insert(guid, Failed { attempts: failed.attempts + 1, next, ..failed });
                }
                None => {
                    self.failed.remove(&guid);
                    self.settled.insert(guid, failed.at);
                    self.given_up += 1;
                }
            }
        }
        // Those that had no turn have the next one.
        if !asks.is_empty() {
            let again = now.monotonic.after(Duration::from_secs(1));
            self.failed.values_mut().for_each(|failed| failed.next = failed.next.max(again));
        }
        asks
    }

    /// Forgets what is too old to be believed, and the oldest if there are too many.
    fn prune(&mut self, now: Timestamp) {
        let oldest = earlier(now, webhook::MAX_AGE);
        let (before, settled) = (self.failed.len(), &mut self.settled);
        self.failed.retain(|_, failed| failed.at > oldest);
        settled.retain(|_, at| *at > oldest);
        while settled.len() > MOST_KNOWN
            && let Some(guid) = settled.iter().min_by_key(|(_, at)| **at).map(|(guid, _)| guid.clone())
        {
            settled.remove(&guid);
        }
        while self.failed.len() > MOST_KNOWN
            && let Some(guid) = self.failed.iter().min_by_key(|(_, failed)| failed.at).map(|(guid, _)| guid.clone())
        {
            self.failed.remove(&guid);
        }
        self.given_up += u64::try_from(before - self.failed.len()).unwrap_or_default();
    }
}

fn earlier(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;

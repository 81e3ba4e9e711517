//! What people are told about jobs after each decision: what is counted, the numbers, and the published queue. It does nothing but look.
//!
//! Each GitHub has a [`Dispatch`] of its own; people get one queue of all.

use super::Dispatch;
use super::demand::Scope;
use super::exchange::{Ask, Decision, Objects};
use super::figures::{Beside, Figures, figures};
use super::milestones::{Milestone, Milestones};
use super::published::{Extras, Operator, Report, is_news, joined, pause_after, report};
use super::runners::Phase;
use crate::forge::Platform;
use crate::notice::Notice;
use crate::object::Name;
use change::{Backoff, Effect, Key, Kind, Moment, Now, Precondition};
use jiff::Timestamp;
use protocol::{Served, Write, WriteError, Written};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Changes within this time are one document: a job that is granted a machine changes several times.
const TOGETHER: Duration = Duration::from_secs(1);
/// After a document that could not be written.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(300) };
/// The usual start of a pool is the median of so many.
const STARTS: usize = 9;
/// So many ids are remembered at most; then one may be told twice.
const MOST_ORPHANS: usize = 1_000;

/// What is remembered of what people were told.
#[derive(Debug, Default)]
pub struct Chronicle {
    /// What was found out about each GitHub, by its address.
    servers: BTreeMap<String, Server>,
    figures: Figures,
    starts: BTreeMap<Name, VecDeque<Duration>>,
    /// Runners without a claim whose removal was asked for.
    orphans: BTreeSet<(Scope, u64)>,
    /// The document as it is, if it has news.
    pending: Option<Report>,
    /// The document that was written last.
    written: Option<Report>,
    /// The document on its way.
    in_flight: Option<Report>,
    due: Option<Moment>,
    not_before: Moment,
    failures: u32,
    /// How large the document on its way is.
    bytes: usize,
}

/// What was found out about one GitHub.
#[derive(Debug, Default)]
struct Server {
    milestones: Milestones,
    figures: Figures,
    report: Report,
    /// Since when machines start that are not online yet; nothing before the first look.
    starting: Option<BTreeMap<Name, Timestamp>>,
}

/// What there is to tell after a decision.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What is counted.
    pub milestones: Vec<Milestone>,
    /// Runners that are registered without a claim, and are removed: where, and their ids.
    pub orphans: Vec<(Scope, u64)>,
    /// The numbers, if they are others than before.
    pub figures: Option<Figures>,
}

impl Told {
    /// The same as reports. `pool_of` finds a pool of an organisation or a repository, with the uid of its object.
    pub fn notices(self, pool_of: impl Fn(&Scope) -> Option<(Name, String)>) -> Vec<Notice> {
        let jobs = self.milestones.into_iter().map(|milestone| Notice::Job(Box::new(milestone)));
        let orphans = self.orphans.into_iter().filter_map(|(scope, id)| {
            let (pool, uid) = pool_of(&scope)?;
            Some(Notice::OrphanRunner { pool, uid, owner: scope.owner, id })
        });
        let figures = self.figures.map(|figures| Notice::JobFigures(Box::new(figures)));
        jobs.chain(orphans).chain(figures).collect()
    }
}

impl Chronicle {
    /// Looks at what was decided about the jobs of a GitHub.
    pub fn take(
        &mut self,
        (operator, server): (&Operator, &str),
        dispatch: &Dispatch,
        objects: Objects<'_>,
        decision: &Decision,
        beside: &Beside,
        now: Now,
    ) -> Told {
        self.note_starts(server, objects, decision, now);
        let usual = self.usual();
        let platform = Platform::of_api(server);
        let extras = Extras { platform, usual_starts: Some(&usual), troubles: Some(&beside.troubles) };
        let found = self.servers.entry(server.to_owned()).or_default();
        let milestones = found.milestones.take(dispatch.table());
        found.figures = figures(dispatch, objects, decision);
        // While a document waits for its time it is not made again with every event; whoever writes it calls this first.
        let is_early = self.due.is_some_and(|due| due > now.monotonic);
        if !is_early {
            found.report = report(operator, dispatch, objects, decision, extras);
        }
        let orphans = self.orphans(decision);
        if !is_early {
            self.look(operator, now);
        }
        Told { milestones, orphans, figures: self.count(beside) }
    }

    /// Forgets each GitHub that no pool names any more.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.servers.retain(|server, _| is_there(server));
    }

    /// Puts together what is known of all.
    fn look(&mut self, operator: &Operator, now: Now) {
        let document = joined(operator, self.servers.values().map(|server| &server.report));
        let before = self.in_flight.as_ref().or(self.written.as_ref());
        // A fleet without any pool for jobs publishes nothing, unless it has published one before.
        let has_news = match before {
            Some(before) => is_news(before, &document),
            None => !document.pools.is_empty() || !document.jobs.is_empty(),
        };
        self.pending = has_news.then_some(document);
        if self.pending.is_none() {
            self.due = None;
        } else if self.due.is_none() {
            self.due = Some(now.monotonic.after(TOGETHER).max(self.not_before));
        }
    }

    /// The numbers of all, if they are others than before.
    fn count(&mut self, beside: &Beside) -> Option<Figures> {
        let mut numbers = Figures::beside(beside);
        self.servers.values().for_each(|server| numbers.add(&server.figures));
        let is_new = numbers != self.figures;
        self.figures.clone_from(&numbers);
        is_new.then_some(numbers)
    }

    /// Runners without a claim that are removed now. A removal that is asked for again is no news.
    fn orphans(&mut self, decision: &Decision) -> Vec<(Scope, u64)> {
        let removed = decision.asks.iter().filter_map(|ask| match ask {
            Ask::Remove { scope, id, claim: None } => Some((scope.clone(), *id)),
            _ => None,
        });
        let found = removed.filter(|found| self.orphans.insert(found.clone())).collect();
        if self.orphans.len() > MOST_ORPHANS {
            self.orphans.clear();
        }
        found
    }

    /// How long machines take to come online. When those that start at the first look began is not known.
    fn note_starts(&mut self, server: &str, objects: Objects<'_>, decision: &Decision, now: Now) {
        let known = self.servers.entry(server.to_owned()).or_default().starting.take();
        let mut starting = BTreeMap::new();
        for claim in objects.claims {
            let begun = known.as_ref().and_then(|known| known.get(&claim.name)).copied();
            match (decision.phases.get(&claim.name), begun) {
                (Some(Phase::Starting), Some(begun)) => drop(starting.insert(claim.name.clone(), begun)),
                (Some(Phase::Starting), None) if known.is_some() => drop(starting.insert(claim.name.clone(), now.wall)),
                (Some(Phase::Online(since)), Some(begun)) => self.started(&claim.pool, between(begun, *since)),
                (Some(Phase::Busy(_)), Some(begun)) => self.started(&claim.pool, between(begun, now.wall)),
                _ => {}
            }
        }
        if let Some(found) = self.servers.get_mut(server) {
            found.starting = Some(starting);
        }
    }

    fn started(&mut self, pool: &Name, took: Duration) {
        let starts = self.starts.entry(pool.clone()).or_default();
        starts.push_back(took);
        if starts.len() > STARTS {
            starts.pop_front();
        }
    }

    /// How long machines of each pool usually take to come online.
    fn usual(&self) -> BTreeMap<Name, Duration> {
        let median = |starts: &VecDeque<Duration>| {
            let mut sorted: Vec<Duration> = starts.iter().copied().collect();
            sorted.sort_unstable();
            sorted.get(sorted.len() / 2).copied()
        };
        self.starts.iter().filter_map(|(name, starts)| Some((name.clone(), median(starts)?))).collect()
    }

    /// When [`Chronicle::take`] is to be called again for each GitHub, and then [`Chronicle::write`]; nothing while nothing is new or a document is on its way.
    pub fn due(&self) -> Option<Moment> {
        self.due.filter(|_| self.in_flight.is_none())
    }

    /// The write of the document to a ConfigMap in the namespace of the fleet, if one is due.
    pub fn write(&mut self, home: &str, now: Now) -> Option<Write> {
        let (report, attempt) = (self.publish(now.monotonic)?, self.failures.min(3));
        let text = serde_json::to_string(&report).ok()?;
        self.bytes = text.len();
        let kind = Kind::new("v1", "ConfigMap");
        let key = Key { kind: kind.clone(), namespace: home.to_owned(), name: api::fleet::QUEUE.into() };
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name, "namespace": home},
            "data": {"reported": now.wall.to_string(), "queue.json": text},
        });
        let effect = Effect::apply(object, Precondition::None, true);
        Some(Write { key, served: Served::at(kind, "configmaps", true), effect, attempt, backup: None })
    }

    /// Whether a write is that of the document.
    pub fn is_mine(key: &Key) -> bool {
        key.kind.kind == "ConfigMap" && key.name == api::fleet::QUEUE
    }

    /// Takes the answer to the write.
    pub fn answered(&mut self, result: &Result<Written, WriteError>, now: Moment) -> Option<Notice> {
        let is_news = self.published(result.is_ok(), self.bytes, now);
        let why = result.as_ref().err().filter(|_| is_news)?;
        Some(Notice::QueueNotWritten(why.to_string()))
    }

    /// The document to write now, if there is one.
    fn publish(&mut self, now: Moment) -> Option<Report> {
        if self.due()? > now {
            return None;
        }
        self.due = None;
        self.in_flight = self.pending.take();
        self.in_flight.clone()
    }

    /// Takes what became of the write of a document with so many bytes; true if its failure is news.
    fn published(&mut self, is_written: bool, bytes: usize, now: Moment) -> bool {
        let Some(sent) = self.in_flight.take() else { return false };
        if is_written {
            (self.written, self.failures) = (Some(sent), 0);
            self.not_before = now.after(pause_after(bytes));
        } else {
            self.not_before = now.after(AGAIN.pause(self.failures));
            self.failures = self.failures.saturating_add(1);
            // Something newer may be waiting; otherwise the same is written again.
            self.pending = self.pending.take().or(Some(sent));
        }
        self.due = self.pending.is_some().then_some(self.not_before);
        !is_written && self.failures == 1
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! The autopilot as one state machine: events in, commands out. Each part decides about one thing; this file only connects them.

mod conditions;
mod estimates;
pub mod explain;
mod formers;
mod intake;
mod kinds;
mod managed;
mod many_deletions;
mod objects;
mod orphans;
mod plan_items;
mod planning;
mod platform;
mod previews;
mod publishing;
mod reads;
mod reconcile;
mod records;
mod removals;
mod render;
mod reporting;
mod reports;
mod rollouts;
mod saving;
mod timers;
mod writes;
mod written;

use crate::evaluate::{Before, Evaluation, Outcome, Rules, WrittenRules, evaluate};
use crate::notice::Notice;
use crate::report::Operator;
use catalog::{Catalog, Facts};
use change::{Digest, Key, Kind, Live, Moment, Now, PatchableKinds};
use estimates::Estimates;
use formers::Formers;
use many_deletions::Deletions;
use objects::Objects;
use observe::{Discovery, Queries, Surroundings, Timers, Watches};
use orphans::Orphans;
use platform::Platform;
use protocol::{Command, Event, Never, WatchEvent};
use publishing::Publishing;
use reads::Reads;
use records::Records;
use reports::Reports;
use rollouts::Rollouts;
use saving::Saving;
use std::collections::{BTreeMap, BTreeSet};
use timers::Timer;

/// How the autopilot is to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The namespace of the HyperConverged.
    pub namespace: String,
    /// Whether nothing is managed unless the HyperConverged says so.
    pub opt_in: bool,
    /// Sensitive kinds that users may patch.
    pub patchable: PatchableKinds,
    /// Whether objects that are not wanted any more are deleted or handed back.
    pub prune: bool,
    /// Images by name, for templates.
    pub images: BTreeMap<String, String>,
    /// Whether metrics are served over TLS, for templates.
    pub secure_metrics: bool,
    /// Whether anything is written; else only [`Core::status`] says what would be.
    pub writes: bool,
    /// Whether writes that are not made are tried by a dry run.
    pub previews: Previews,
    /// Who runs it: an operator publishes its report.
    pub operator: Option<Operator>,
    /// These digests count as approved instead of those that the HyperConverged lists.
    pub approved: Option<BTreeSet<Digest>>,
    /// The last rules that could be read, as far as an operator reports them: they hold while the annotations cannot be read.
    pub last_rules: Option<WrittenRules>,
}

/// What dry runs of writes that are not made are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Previews {
    /// There are none.
    #[default]
    Off,
    /// [`Core::status`] shows what the server refuses: only what is to be written is tried.
    Check,
    /// [`Core::plan`] shows what the server would make of every object, also of those that wait.
    Diff,
}

/// What has changed since the assets were rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stale {
    /// Nothing.
    No,
    /// Answers to queries: only assets that make any are rendered.
    Answers,
    /// Something that any asset may depend on.
    All,
}

/// The state machine.
#[derive(Debug)]
pub struct Core {
    config: Config,
    catalog: Catalog,
    facts: Facts,
    /// What has changed that assets depend on.
    stale: Stale,
    has_rendered: bool,
    platform: Platform,
    surroundings: Surroundings,
    estimates: Estimates,
    formers: Formers,
    rollouts: Rollouts,
    discovery: Discovery,
    watches: Watches,
    queries: Queries,
    reads: Reads,
    objects: Objects,
    /// What every asset came to when it was rendered last.
    outcomes: Vec<Outcome>,
    /// What is wrong with the annotations of the HyperConverged.
    advice: Vec<String>,
    orphans: Orphans,
    deletions: Deletions,
    records: Records,
    saving: Saving,
    publishing: Publishing,
    timers: Timers<Timer>,
    reports: Reports,
    now: Now,
    commands: Vec<Command<Notice>>,
}

impl Core {
    /// A core that knows nothing yet.
    pub fn new(config: Config, catalog: Catalog, now: Now) -> Core {
        let mut timers = Timers::default();
        timers.set(Timer::Discover, now.monotonic);
        Core {
            facts: Facts { images: config.images.clone(), secure_metrics: config.secure_metrics, ..Facts::default() },
            stale: Stale::No,
            has_rendered: false,
            platform: Platform {
                rules: config.last_rules.clone().map(|written| Rules::read(written, &catalog, config.opt_in)),
                ..Platform::new(&config.namespace)
            },
            surroundings: Surroundings::default(),
            estimates: Estimates::default(),
            formers: Formers::new(&catalog, &config.namespace),
            rollouts: Rollouts::default(),
            discovery: Discovery::new(&catalog),
            watches: Watches::default(),
            queries: Queries::default(),
            reads: Reads::default(),
            objects: Objects::default(),
            outcomes: Vec::new(),
            advice: Vec::new(),
            orphans: Orphans::default(),
            deletions: Deletions::default(),
            records: Records::new(&config.namespace),
            saving: Saving::default(),
            publishing: Publishing::new(&config.namespace),
            timers,
            reports: Reports::default(),
            now,
            commands: Vec::new(),
            config,
            catalog,
        }
    }

    /// What is known of the cluster.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The HyperConverged.
    pub fn hyperconverged(&self) -> &Key {
        &self.platform.key
    }

    /// Whether the API server serves HyperConverged.
    pub fn serves_hyperconverged(&self) -> bool {
        self.is_served(&self.platform.key.kind)
    }

    /// Whether the API server serves a kind.
    pub(crate) fn is_served(&self, kind: &Kind) -> bool {
        self.discovery.kinds.find(kind).is_some()
    }

    /// Whether enough was known to render the catalogue.
    pub fn has_evaluated(&self) -> bool {
        self.has_rendered
    }

    /// Whether it could be read how many approvals were used; else most digests to approve are not known.
    pub fn has_read_records(&self) -> bool {
        self.records.is_read()
    }

    /// What every asset comes to, from what is known now.
    pub fn evaluation(&self) -> Evaluation {
        self.evaluate(Vec::new())
    }

    /// The same; of assets that make no query, these outcomes are kept.
    fn evaluate(&self, outcomes: Vec<Outcome>) -> Evaluation {
        let before = Before { rules: self.platform.rules.as_ref(), outcomes };
        let mut evaluation = evaluate(&self.catalog, &self.facts, self.config.opt_in, before);
        if let Some(approved) = &self.config.approved {
            evaluation.consent.approved.clone_from(approved);
        }
        evaluation
    }

    fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::FirstLists => self.watches.stop_waiting(),
            Timer::Discover => self.discover(),
            Timer::Reconcile(key) => self.enqueue(&key),
            Timer::Refetch(key) => self.refetch(&key),
            Timer::Query(query) => self.send_query(query),
            Timer::Search(search) => self.search(search),
            Timer::Publish => self.publish(),
            // These only wake the core: what is due is done after every batch.
            Timer::Searches | Timer::Room | Timer::Save => {}
        }
    }

    fn notify(&mut self, notice: Notice) {
        self.commands.push(Command::Notify(notice));
    }
}

/// Whether an event brings a large object.
fn is_large(event: &Event) -> bool {
    match event {
        Event::Watched(_, WatchEvent::Present { live, .. })
        | Event::Refetched(_, Ok(Some(live)))
        | Event::Inspected(_, Ok(Some((live, _)))) => live.is_large(),
        Event::Written(_, Ok(written)) => written.live.as_ref().is_some_and(Live::is_large),
        _ => false,
    }
}

impl protocol::Core for Core {
    type Notice = Notice;
    type Request = Never;
    type Answer = Never;

    fn handle(&mut self, events: Vec<Event>, now: Now) -> Vec<Command<Notice>> {
        self.now = now;
        let expired = self.timers.expired(now.monotonic);
        // A window that opens or a pause that ends changes what is reported without an event.
        let is_news = expired.iter().any(|timer| *timer != Timer::Publish)
            || events.iter().any(|event| !matches!(event, Event::Tick));
        for timer in expired {
            self.expire(timer);
        }
        for event in events {
            match event {
                Event::Tick => {}
                Event::Watched(target, event) => self.watched(&target, event),
                Event::Discovered(answer) => self.discovered(answer),
                Event::Answered(query, answer) => self.answered(query, answer),
                Event::Refetched(key, found) => self.refetched(&key, found),
                Event::Inspected(key, found) => self.inspected(&key, found),
                Event::Found(search, found) => self.found(search, found),
                Event::Previewed(key, result) => self.previewed(&key, result),
                Event::Written(key, result) => self.written(&key, result),
            }
        }
        if is_news {
            self.plan_report();
        }
        self.render_if_stale();
        self.resume_deletions();
        while !self.watches.are_awaited()
            && let Some(key) = self.objects.next_ready(now.monotonic)
        {
            self.reconcile(&key);
        }
        if let Some(room) = self.objects.room_at() {
            self.timers.set(Timer::Room, room);
        }
        self.search_orphans();
        self.save_records();
        std::mem::take(&mut self.commands)
    }

    fn is_heavy(&self, events: &[Event]) -> bool {
        events.iter().any(is_large) || self.objects.is_one_large()
    }

    fn wake_at(&self) -> Option<Moment> {
        // Once every list is there, nothing waits for them any more.
        self.timers.next(|timer| *timer != Timer::FirstLists || self.watches.are_awaited())
    }

    fn backlog(&self) -> usize {
        self.objects.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::is_large;
    use change::{Key, Kind, Live, ManagedFields};
    use protocol::{Body, Event, WatchEvent, WatchTarget, Written};
    use serde_json::Value;

    #[test]
    fn an_event_that_brings_a_large_object_is_large() {
        let key = || Key { kind: Kind::new("v1", "ConfigMap"), namespace: String::new(), name: "x".into() };
        let live = |bytes: usize| Live { managed_fields: ManagedFields::new(&" ".repeat(bytes)), ..Live::default() };
        let present = |live: Live| {
            let (namespace, name, body) = (String::new(), "x".into(), Body::None);
            let event = WatchEvent::Present { namespace, name, live, generation: 1, body };
            Event::Watched(WatchTarget::of(&key()), event)
        };
        let written = |live: Live| Event::Written(key(), Ok(Written { live: Some(live), before: None }));
        let events = |bytes: usize| {
            [
                present(live(bytes)),
                Event::Refetched(key(), Ok(Some(live(bytes)))),
                Event::Inspected(key(), Ok(Some((live(bytes), Value::Null)))),
                written(live(bytes)),
            ]
        };
        assert!(events(100_000).iter().all(is_large) && !events(100).iter().any(is_large) && !is_large(&Event::Tick));
    }
}

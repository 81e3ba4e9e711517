//! Scale sets: GitHub assigns jobs to them by the capacity that is reported, and tells their only listener.

mod leaving;

use super::forges::{Call, Forge, ForgeAnswer};
use super::{Core, Due};
use crate::conditions::{Wanted, wanted};
use crate::forge::listener::{Listener, Step};
use crate::forge::{
    self, Answer, Failure, Message, ScaleSet, ScaleSetAsk, ScaleSetEvent, ScaleSetEventKind, ScaleSetId,
    ScaleSetWanted, Statistics,
};
use crate::jobs::demand::Hearing;
use crate::jobs::exchange::Event;
use crate::jobs::job::{Facts, JobKey, Observation, Repository, Source, State};
use crate::jobs::settings::{Settings, page};
use crate::notice::Notice;
use crate::object::Name;
use api::fleet::{JobSource, ScaleSetRecord};
use change::Moment;
use jiff::Timestamp;
use leaving::{Farewell, Former};
use std::collections::BTreeSet;
use std::time::Duration;

/// A scale set that could not be found or created is asked for again after this.
const AGAIN: Duration = Duration::from_secs(60);
/// One that is gone is made again after this.
const MADE_AGAIN: Duration = Duration::from_secs(5);
/// The session of a process that has ended is over after two minutes; one that lasts longer is another listener's.
const LAST: Duration = Duration::from_secs(180);

/// Which scale set a pool wants, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    page: String,
    set: ScaleSetWanted,
}

/// How far the listener of a pool is.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// Answers to what was asked before this number are those to another listener.
    round: u64,
    wanted: Option<Target>,
    /// The scale set as GitHub has it.
    set: Option<ScaleSetId>,
    labels: BTreeSet<String>,
    /// Whether the fleet has created it.
    is_created: bool,
    /// Whether there was none, so that the fleet is who creates it, also if the answer to that gets lost.
    was_absent: bool,
    /// Whether it is to be looked at before a session is opened.
    is_to_look: bool,
    listener: Listener,
    /// Whether a step is on its way.
    is_waiting: bool,
    not_before: Moment,
    /// Sessions so far, so that what an earlier one said counts less.
    sessions: u64,
    /// When GitHub was asked first.
    since: Option<Timestamp>,
    failure: Option<String>,
    /// The scale set that the pool has created before, and does not use any more.
    former: Option<Former>,
    /// The last one of these that is gone.
    gone: Option<ScaleSetId>,
    /// How it was when its pool was reconciled last.
    shown: (Hearing, bool),
    farewell: Farewell,
}

/// What was asked.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    Find,
    Ensure,
    Open,
    Poll,
    Acquire(Vec<u64>),
    Acknowledge,
    /// Delete it because it has other labels.
    Replace,
    /// Delete it because its pool is deleted.
    Leave,
    /// How a former one stands.
    Former,
    /// Delete a former one.
    DeleteFormer,
}

impl Target {
    fn of(settings: &Settings) -> Option<Target> {
        let name = settings.github.scale_set.clone().filter(|_| settings.sources.contains(&JobSource::ScaleSet))?;
        let set = ScaleSetWanted { name, group: settings.github.runner_group.clone(), labels: settings.labels.clone() };
        Some(Target { page: page(&settings.github), set })
    }

    /// Whether it is the same scale set, whatever labels it has.
    fn is_same(&self, other: &Target) -> bool {
        self.page == other.page && self.set.name == other.set.name && self.set.group == other.set.group
    }
}

impl Listening {
    /// For these settings of a pool. `round` is larger than that of any listener before.
    fn new(settings: &Result<Settings, (String, String)>, round: u64) -> Listening {
        let wanted = settings.as_ref().ok().and_then(Target::of);
        Listening { round, wanted, sessions: round, ..Listening::default() }
    }

    /// Goes on with other settings, if the scale set is the same.
    fn goes_on(&mut self, settings: &Result<Settings, (String, String)>) -> bool {
        match (&mut self.wanted, settings.as_ref().ok().and_then(Target::of)) {
            (None, None) => true,
            (Some(before), Some(after)) if before.is_same(&after) => {
                *before = after;
                true
            }
            _ => false,
        }
    }

    /// The scale set, and how the pool hears of its jobs.
    fn hearing(&self, now: Timestamp) -> (Option<ScaleSetId>, Hearing) {
        if self.wanted.is_none() {
            return (None, Hearing::Open);
        }
        let is_taken = self.listener.taken_since().is_some_and(|since| change::now::later(since, LAST) <= now);
        let hearing = if is_taken {
            Hearing::Taken
        } else if self.since.is_some_and(|since| self.listener.is_deaf(since, now)) {
            Hearing::Deaf
        } else if self.set.is_none() {
            Hearing::Unknown
        } else if self.listener.session().is_some() {
            Hearing::Open
        } else {
            Hearing::Opening
        };
        (self.set, hearing)
    }

    /// For the status of the pool.
    fn record(&self) -> Option<ScaleSetRecord> {
        let (set, target) = (self.set?, self.wanted.as_ref()?);
        let (name, scope) = (target.set.name.clone(), target.page.clone());
        Some(ScaleSetRecord { id: set.0, name, scope, is_created: self.is_created })
    }

    /// Whether GitHub has it with other labels than it is to have.
    fn differs(&self) -> bool {
        let lower =
            |labels: &BTreeSet<String>| labels.iter().map(|label| label.to_lowercase()).collect::<BTreeSet<_>>();
        let wanted = self.wanted.as_ref().map(|wanted| lower(&wanted.set.labels));
        self.set.is_some() && wanted.is_some_and(|wanted| wanted != lower(&self.labels))
    }

    /// Whether it is surely the fleet's alone, and no job is assigned to it.
    fn is_idle(&self) -> bool {
        self.listener.session().is_some()
            && self.listener.offers().is_empty()
            && self.listener.statistics().is_some_and(|found| found.assigned == 0)
    }

    /// The scale set is gone, and its session with it.
    fn forget_set(&mut self) -> Option<Event> {
        let set = self.set.take()?;
        (self.listener, self.is_created) = (Listener::default(), false);
        Some(Event::ScaleSetGone(set.0))
    }

    /// The condition of the pool; nothing if it has no scale set.
    fn condition(&self, now: Timestamp) -> Option<Wanted> {
        let name = &self.wanted.as_ref()?.set.name;
        let because = |message: String| match &self.failure {
            Some(failure) => format!("{message}: {failure}"),
            None => message,
        };
        let shown = |labels: &BTreeSet<String>| labels.iter().cloned().collect::<Vec<_>>().join(", ");
        let (is_true, reason, message) = match self.hearing(now).1 {
            Hearing::Taken => (
                false,
                "SessionTaken",
                format!("another listener has the session of scale set {name}; stop it, or set another scaleSet"),
            ),
            Hearing::Deaf => (
                false,
                "Unreachable",
                because(format!("nothing is heard of scale set {name}, so that runners are registered without it")),
            ),
            Hearing::Unknown | Hearing::Opening => {
                (false, "Opening", because(format!("the session of scale set {name} is being opened")))
            }
            Hearing::Open if self.differs() => {
                let wanted = self.wanted.as_ref().map(|wanted| shown(&wanted.set.labels)).unwrap_or_default();
                let remedy = match self.is_created {
                    true => "it is created again once no job is assigned to it",
                    false => "delete it on GitHub, set another scaleSet, or correct the labels",
                };
                let found = shown(&self.labels);
                let why = "GitHub changes no labels of an existing one";
                let message =
                    format!("scale set {name} has the labels {found} instead of {wanted}, and {why}; {remedy}");
                (false, "LabelsDiffer", message)
            }
            Hearing::Open => (true, "Listening", format!("jobs of scale set {name} are run")),
        };
        Some(wanted("ScaleSet", is_true, reason, message))
    }
}

impl Core {
    /// The listener of a pool with these settings, in place of the one before with the address of its API.
    pub(super) fn listener(
        &mut self,
        pool: &Name,
        before: Option<(String, Listening)>,
        settings: &Result<Settings, (String, String)>,
    ) -> Listening {
        if let Some((api, mut known)) = before {
            if known.goes_on(settings) {
                return known;
            }
            let former = self.stop_listening(pool, &api, known);
            self.last_number += 1;
            let listening = Listening::new(settings, self.last_number);
            let scope = settings.as_ref().ok().map(|settings| page(&settings.github));
            return Listening {
                former: former.filter(|former| Some(&former.record.scope) == scope.as_ref()),
                ..listening
            };
        }
        self.last_number += 1;
        Listening::new(settings, self.last_number)
    }

    /// The scale set of a pool, and how the pool hears of its jobs.
    pub(super) fn hearing(&self, pool: &Name) -> (Option<ScaleSetId>, Hearing) {
        let forge = self.ci.forges.get(pool);
        forge.map(|forge| forge.listening.hearing(self.now.wall)).unwrap_or_default()
    }

    /// What the status of a pool says about its scale set.
    pub(super) fn shown_set(&self, pool: &Name) -> (Option<ScaleSetRecord>, Option<Wanted>) {
        let Some(Forge { listening, .. }) = self.ci.forges.get(pool) else { return (None, None) };
        // What was created stays known until it is deleted, and until an earlier process's is looked at.
        let former = listening.former.as_ref().map(|former| former.record.clone());
        let before = self.recorded_set(pool).filter(|record| {
            let is_known = listening.gone == Some(ScaleSetId(record.id));
            let is_same = |target: &Target| target.page == record.scope && target.set.name == record.name;
            !is_known && (record.is_created || listening.wanted.as_ref().is_some_and(is_same))
        });
        (former.or(listening.record()).or(before.cloned()), listening.condition(self.now.wall))
    }

    fn recorded_set(&self, pool: &Name) -> Option<&ScaleSetRecord> {
        self.pools.get(pool)?.entry.object.status.scale_set.as_ref()
    }

    /// Takes the next step of every listener.
    pub(super) fn listen(&mut self) {
        let pools: Vec<Name> = self.ci.forges.keys().cloned().collect();
        for pool in pools {
            self.listen_for(&pool);
        }
    }

    fn listen_for(&mut self, pool: &Name) {
        let now = self.now;
        let scale = self.ci.scale.get(pool).copied().unwrap_or_default();
        self.clear_former(pool);
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let (is_connected, api) = (forge.is_connected(), forge.api().unwrap_or_default().to_owned());
        let listening = &mut forge.listening;
        let shown = (listening.hearing(now.wall).1, listening.differs());
        if std::mem::replace(&mut listening.shown, shown) != shown {
            self.due.insert(Due::Pool(pool.clone()));
        }
        let Some(wanted) = &listening.wanted else { return };
        if listening.is_waiting || !is_connected || listening.farewell != Farewell::Not {
            return;
        }
        if listening.not_before > now.monotonic {
            let at = listening.not_before;
            return self.wake(Due::Jobs, at);
        }
        let (ask, asked) = match listening.set {
            Some(set) if listening.differs() && listening.is_created && listening.is_idle() => {
                (ScaleSetAsk::Delete(set), Asked::Replace)
            }
            Some(set) if !listening.is_to_look => {
                let granted = self.ci.granted.get(&(api, set.0)).cloned().unwrap_or_default();
                match listening.listener.next(now.wall, &granted) {
                    Step::Wait(until) => {
                        listening.not_before = now.moment_of(until);
                        let at = listening.not_before;
                        return self.wake(Due::Jobs, at.max(now.monotonic.after(Duration::from_millis(200))));
                    }
                    Step::Open => {
                        let owner = format!("virtpilot-{}", self.config.operator);
                        (ScaleSetAsk::Open { set, owner }, Asked::Open)
                    }
                    Step::Acquire(session, requests) => {
                        (ScaleSetAsk::Acquire { session, requests: requests.clone() }, Asked::Acquire(requests))
                    }
                    Step::Acknowledge(session, message) => {
                        (ScaleSetAsk::Acknowledge { session, message }, Asked::Acknowledge)
                    }
                    Step::Poll(session, last) => {
                        (ScaleSetAsk::Poll { session, last, capacity: scale.capacity }, Asked::Poll)
                    }
                }
            }
            _ if listening.was_absent => (ScaleSetAsk::Ensure(wanted.set.clone()), Asked::Ensure),
            _ => {
                let (name, group) = (wanted.set.name.clone(), wanted.set.group.clone());
                (ScaleSetAsk::Find { name, group }, Asked::Find)
            }
        };
        listening.is_waiting = true;
        listening.since.get_or_insert(now.wall);
        let round = listening.round;
        self.ask_forge(pool, forge::Ask::ScaleSet(ask), Call::Listen(pool.clone(), round, asked));
    }

    /// Takes the answer to a step.
    pub(super) fn listened(&mut self, pool: &Name, round: u64, asked: Asked, answer: ForgeAnswer) {
        let now = self.now;
        let recorded = self.recorded_set(pool).filter(|record| record.is_created).cloned();
        let Some(forge) = self.ci.forges.get_mut(pool).filter(|forge| forge.listening.round == round) else { return };
        let api = forge.api().unwrap_or_default().to_owned();
        let listening = &mut forge.listening;
        match asked {
            Asked::Leave => return self.left(pool, answer),
            Asked::Former | Asked::DeleteFormer => return self.former_answered(pool, &asked, answer),
            _ => {}
        }
        listening.is_waiting = false;
        let (mut events, mut failure) = (Vec::new(), None);
        match (asked, answer) {
            (Asked::Find, Ok(Answer::ScaleSet(None))) => {
                events.extend(listening.forget_set());
                (listening.was_absent, listening.is_to_look) = (true, false);
            }
            (Asked::Find | Asked::Ensure, Ok(Answer::ScaleSet(Some(found)))) => {
                listening.is_to_look = false;
                if listening.set != Some(found.id) {
                    events.extend(listening.forget_set());
                }
                let ScaleSet { id, labels, statistics, is_new, .. } = *found;
                (listening.set, listening.labels) = (Some(id), labels);
                let scope = listening.wanted.as_ref().map(|wanted| &wanted.page);
                let was_created = |record: ScaleSetRecord| record.id == id.0 && Some(&record.scope) == scope;
                let is_new = is_new || std::mem::take(&mut listening.was_absent);
                listening.is_created |= is_new || recorded.is_some_and(was_created);
                // While another listener has the session, jobs that are assigned need machines all the same.
                if let Some(statistics) = statistics {
                    events.extend(stands(listening, statistics, (listening.sessions + 1, 0)));
                }
            }
            (Asked::Find | Asked::Ensure, answer) => {
                listening.not_before = now.monotonic.after(AGAIN);
                failure = Some(answer.err().map_or_else(|| "there is none".to_owned(), |failure| failure.to_string()));
            }
            (Asked::Open, Ok(Answer::Session(session))) => {
                listening.sessions += 1;
                listening.listener.opened(&session, now.wall);
                events.extend(stands(listening, session.statistics, (listening.sessions, 0)));
            }
            (Asked::Poll, Ok(Answer::Message(message))) => {
                listening.listener.polled(message.as_deref(), now.wall);
                if let Some(message) = message {
                    events.extend(observations(listening, &message, now.wall));
                    events.extend(stands(listening, message.statistics, (listening.sessions, message.id)));
                }
            }
            (Asked::Acquire(requests), Ok(answer)) => {
                listening.listener.acquired(&requests, now.wall);
                if let (Answer::Acquired(acquired), Some(set)) = (answer, listening.set) {
                    let requests = requests.into_iter().filter(|request| !acquired.contains(request)).collect();
                    events.push(Event::Withdrawn { scale_set: set.0, requests });
                }
            }
            (Asked::Acknowledge, Ok(_)) => listening.listener.acknowledged(now.wall),
            (Asked::Replace, Ok(_)) => events.extend(listening.forget_set()),
            (Asked::Replace, answer) => {
                listening.not_before = now.monotonic.after(AGAIN);
                failure = answer.err().map(|failure| failure.to_string());
            }
            (Asked::Leave | Asked::Former | Asked::DeleteFormer, _) => {}
            (asked, answer) => {
                let found = answer.err().unwrap_or_else(|| Failure::Transient("another answer was expected".into()));
                // Sessions end now and then, and a successor takes over: only what a person can change is worth a report.
                failure =
                    matches!(found, Failure::Configuration { .. } | Failure::Permanent(_)).then(|| found.to_string());
                listening.listener.failed(&found, now.wall);
                listening.is_to_look = matches!(found, Failure::Taken(_));
                if matches!((asked, found), (Asked::Open, Failure::Permanent(_))) {
                    events.extend(listening.forget_set());
                    listening.not_before = now.monotonic.after(MADE_AGAIN);
                }
            }
        }
        let is_news = failure.is_some() && listening.failure != failure;
        listening.failure.clone_from(&failure);
        if let Some(message) = failure.filter(|_| is_news) {
            self.notify(Notice::ForgeFailed { what: "listen to the scale set", message });
        }
        for event in events {
            self.tell(&api, event);
        }
        self.due.extend([Due::Jobs, Due::Pool(pool.clone())]);
    }
}

fn stands(listening: &Listening, statistics: Statistics, order: (u64, u64)) -> Option<Event> {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let (jobs, offered) = (small(statistics.assigned), small(statistics.available));
    Some(Event::Assigned { scale_set: listening.set?.0, order, jobs, offered })
}

/// What a message says about jobs. It is a hint: the statistics count.
fn observations(listening: &Listening, message: &Message, now: Timestamp) -> Vec<Event> {
    let Some(set) = listening.set else { return Vec::new() };
    let observed = |event: &ScaleSetEvent| {
        let (state, runner, conclusion) = match &event.kind {
            ScaleSetEventKind::Available => (State::Waiting, None, None),
            ScaleSetEventKind::Assigned => (State::Queued, None, None),
            ScaleSetEventKind::Started(_, name) => (State::InProgress, Some(name.clone()), None),
            ScaleSetEventKind::Completed(result, runner) => {
                (State::Completed, runner.as_ref().map(|(_, name)| name.clone()), Some(result.clone()))
            }
        };
        let facts = Facts {
            key: JobKey::Request { scale_set: set.0, id: event.request },
            repository: Repository::new(&event.repository.owner, &event.repository.name),
            run: event.run,
            name: event.name.clone(),
            labels: event.labels.iter().map(|label| label.to_lowercase()).collect(),
            group: None,
            state,
            runner,
            conclusion,
            created: None,
            started: None,
            completed: None,
        };
        Event::Observed(Box::new(Observation { source: Source::ScaleSet, at: now, facts }))
    };
    message.events.iter().map(observed).collect()
}

//! Scale sets: GitHub assigns jobs to them by the capacity that is reported, and tells their only listener.

use super::forges::{Call, ForgeAnswer};
use super::{Core, Due};
use crate::forge::listener::{Listener, Step};
use crate::forge::{
    self, Answer, Failure, Message, ScaleSetAsk, ScaleSetEvent, ScaleSetEventKind, ScaleSetId, ScaleSetWanted,
};
use crate::jobs::exchange::Event;
use crate::jobs::job::{Facts, JobKey, Observation, Repository, Source, State};
use crate::notice::Notice;
use crate::object::Name;
use api::fleet::JobSource;
use change::Moment;
use jiff::Timestamp;
use std::time::Duration;

/// A scale set that could not be found or created is asked for again after this.
const AGAIN: Duration = Duration::from_secs(60);

/// How far the listener of a pool is.
#[derive(Debug, Default)]
pub(super) struct Listening {
    set: Option<ScaleSetId>,
    listener: Listener,
    /// Whether a step is on its way.
    is_waiting: bool,
    not_before: Moment,
    /// Sessions so far, so that what an earlier one said counts less.
    sessions: u64,
}

/// What was asked.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    Ensure,
    Open,
    Poll,
    Acquire(Vec<u64>),
    Acknowledge,
}

impl Core {
    /// The scale set that the runners of a pool belong to, once it is listened to.
    pub(super) fn scale_set(&self, pool: &Name) -> Option<ScaleSetId> {
        let listening = &self.ci.forges.get(pool)?.listening;
        listening.listener.statistics()?;
        listening.set
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
        let operator = self.config.operator.clone();
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let is_connected = forge.is_connected();
        let Ok(settings) = &forge.settings else { return };
        let (Some(name), true) = (&settings.github.scale_set, settings.sources.contains(&JobSource::ScaleSet)) else {
            return;
        };
        let listening = &mut forge.listening;
        if listening.is_waiting || !is_connected || listening.not_before > now.monotonic {
            return;
        }
        let (ask, asked) = match listening.set {
            None => {
                let (name, group) = (name.clone(), settings.github.runner_group.clone());
                (ScaleSetAsk::Ensure(ScaleSetWanted { name, group, labels: settings.labels.clone() }), Asked::Ensure)
            }
            Some(set) => {
                let assigned = listening.listener.statistics().map_or(0, |found| found.assigned);
                let free = u64::from(scale.capacity).saturating_sub(assigned);
                match listening.listener.next(now.wall, usize::try_from(free).unwrap_or(usize::MAX)) {
                    Step::Wait(until) => {
                        listening.not_before = now.moment_of(until);
                        let at = listening.not_before;
                        return self.wake(Due::Jobs, at.max(now.monotonic.after(Duration::from_millis(200))));
                    }
                    Step::Open => (ScaleSetAsk::Open { set, owner: format!("virtpilot-{operator}") }, Asked::Open),
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
        };
        listening.is_waiting = true;
        self.ask_forge(pool, forge::Ask::ScaleSet(ask), Call::Listen(pool.clone(), asked));
    }

    /// Takes the answer to a step.
    pub(super) fn listened(&mut self, pool: &Name, asked: Asked, answer: ForgeAnswer) {
        let now = self.now;
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let api = forge.settings.as_ref().ok().map(|settings| settings.address.api.clone()).unwrap_or_default();
        let listening = &mut forge.listening;
        listening.is_waiting = false;
        let (mut events, mut trouble) = (Vec::new(), None);
        let order = |listening: &Listening, message: u64| (listening.sessions, message);
        match (asked, answer) {
            (Asked::Ensure, Ok(Answer::ScaleSet(Some(found)))) => listening.set = Some(found.id),
            (Asked::Ensure, answer) => {
                listening.not_before = now.monotonic.after(AGAIN);
                trouble = Some(answer.err().map_or_else(|| "there is none".to_owned(), |failure| failure.to_string()));
            }
            (Asked::Open, Ok(Answer::Session(session))) => {
                listening.sessions += 1;
                listening.listener.opened(&session, now.wall);
                events.extend(assigned(listening, session.statistics.assigned, order(listening, 0)));
            }
            (Asked::Poll, Ok(Answer::Message(message))) => {
                listening.listener.polled(message.as_deref(), now.wall);
                if let Some(message) = message {
                    events.extend(observations(listening, &message, now.wall));
                    events.extend(assigned(listening, message.statistics.assigned, order(listening, message.id)));
                }
            }
            (Asked::Acquire(requests), Ok(_)) => listening.listener.acquired(&requests, now.wall),
            (Asked::Acknowledge, Ok(_)) => listening.listener.acknowledged(now.wall),
            (_, answer) => {
                let failure = answer.err().unwrap_or_else(|| Failure::Transient("another answer was expected".into()));
                // Sessions end now and then, and a successor takes over: only what a person can change is worth a report.
                trouble = matches!(failure, Failure::Configuration { .. } | Failure::Permanent(_))
                    .then(|| failure.to_string());
                listening.listener.failed(&failure, now.wall);
            }
        }
        if let Some(message) = trouble {
            self.notify(Notice::ForgeFailed { what: "listen to the scale set", message });
        }
        for event in events {
            self.tell(&api, event);
        }
        self.due.insert(Due::Jobs);
    }
}

fn assigned(listening: &Listening, jobs: u64, order: (u64, u64)) -> Option<Event> {
    let (scale_set, jobs) = (listening.set?.0, u32::try_from(jobs).unwrap_or(u32::MAX));
    Some(Event::Assigned { scale_set, order, jobs })
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

//! Scale sets of the small GitHub: their sessions and messages, and the jobs that they are offered or assigned.

use super::hub::{Hub, HubJob};
use crate::forge::{
    Answer, Failure, Message, RepositoryName, RunnerId, ScaleSet, ScaleSetAsk, ScaleSetEvent, ScaleSetEventKind,
    ScaleSetId, ScaleSetWanted, Session, SessionId, Statistics,
};
use std::collections::{BTreeSet, VecDeque};

/// A session ends so long after its listener asked last, in milliseconds.
const SESSION: u64 = 120_000;
/// So long a poll waits for a message.
const POLL: u64 = 50_000;

/// How jobs come to a scale set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Assignment {
    /// GitHub.com assigns them, as many as the reported capacity allows.
    #[default]
    Automatic,
    /// An enterprise server offers them, and the listener acquires some.
    Acquire,
}

#[derive(Debug)]
pub(super) struct HubSet {
    pub(super) name: String,
    group: Option<String>,
    pub(super) labels: BTreeSet<String>,
    /// Its id, and when its listener asked last.
    pub(super) session: Option<(SessionId, u64)>,
    /// What the listener reported last.
    pub(super) capacity: u32,
    pending: Vec<ScaleSetEvent>,
    messages: VecDeque<Message>,
    last: u64,
}

/// A poll that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct HubPoll {
    set: u64,
    pub(super) session: SessionId,
    last: u64,
    until: u64,
}

fn no_set(set: u64) -> Failure {
    Failure::Permanent(format!("no runner scale set found with identifier {set}"))
}

fn no_session() -> Failure {
    Failure::SessionLost("the session could not be found".into())
}

impl Hub {
    /// Somebody makes a scale set.
    pub(super) fn add_set(&mut self, wanted: &ScaleSetWanted) -> u64 {
        let ScaleSetWanted { name, group, labels } = wanted.clone();
        self.next += 1;
        let (pending, messages) = (Vec::new(), VecDeque::new());
        let set = HubSet { name, group, labels, session: None, capacity: 0, pending, messages, last: 0 };
        self.sets.insert(self.next, set);
        self.next
    }

    /// A scale set is deleted, whoever did it: its runners go with it, and its jobs wait for others.
    pub(super) fn delete_set(&mut self, set: u64) {
        self.sets.remove(&set);
        self.runners.retain(|_, runner| runner.set != Some(set) || runner.job.is_some());
        for job in self.jobs.values_mut().filter(|job| job.runner.is_none()) {
            job.set = job.set.filter(|of| *of != set);
        }
        let open: Vec<u64> = self.jobs.iter().filter(|(_, job)| is_open(job)).map(|(id, _)| *id).collect();
        open.into_iter().for_each(|job| self.offer(job));
    }

    /// Somebody else opens the session of a scale set, and keeps it.
    pub(super) fn occupy(&mut self, set: u64) {
        if let Some(set) = self.sets.get_mut(&set) {
            set.session = Some((SessionId("somebody".into()), u64::MAX / 2));
        }
    }

    /// All sessions are lost, as by a restart of the service.
    pub(super) fn lose_sessions(&mut self) {
        self.sets.values_mut().for_each(|set| set.session = None);
    }

    /// How a scale set stands.
    pub(super) fn statistics(&self, id: u64) -> Statistics {
        let mut found = Statistics::default();
        let Some(set) = self.sets.get(&id) else { return found };
        for job in self.jobs.values().filter(|job| !job.is_done) {
            match (&job.runner, job.set) {
                (None, Some(of)) if of == id => found.acquired += 1,
                (None, None) if fits(set, job) => found.available += 1,
                (Some(_), Some(of)) if of == id => found.running += 1,
                _ => {}
            }
        }
        found.assigned = found.acquired + found.running;
        for runner in self.runners.values().filter(|runner| runner.set == Some(id)) {
            found.registered += 1;
            found.busy += u64::from(runner.job.is_some());
            found.idle += u64::from(runner.is_online && runner.job.is_none());
        }
        found
    }

    /// Offers or assigns a job that waits.
    pub(super) fn offer(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let sets: Vec<u64> = self.sets.iter().filter(|(_, set)| fits(set, job)).map(|(id, _)| *id).collect();
        for set in sets {
            match self.assignment {
                Assignment::Acquire => self.add_event(set, id, ScaleSetEventKind::Available),
                Assignment::Automatic => self.assign_up_to_capacity(set),
            }
        }
    }

    fn assign_up_to_capacity(&mut self, id: u64) {
        let assigned = self.statistics(id).assigned;
        let is_listening = |(_, seen): &(SessionId, u64)| self.now < seen + SESSION;
        let found = self.sets.get(&id).filter(|set| set.session.as_ref().is_some_and(is_listening));
        let Some(set) = found else { return };
        if self.assignment == Assignment::Acquire || self.is_service_down {
            return;
        }
        let free = u64::from(set.capacity).saturating_sub(assigned);
        let open = self.jobs.iter().filter(|(_, job)| is_open(job) && fits(set, job)).map(|(job, _)| *job);
        let open: Vec<u64> = open.take(usize::try_from(free).unwrap()).collect();
        for job in open {
            self.assign_to(id, job);
        }
    }

    fn assign_to(&mut self, set: u64, id: u64) -> bool {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.is_done && job.runner.is_none()) else { return false };
        match job.set {
            Some(of) => return of == set,
            None => job.set = Some(set),
        }
        self.add_event(set, id, ScaleSetEventKind::Assigned);
        true
    }

    /// Tells the scale set of a job what became of it.
    pub(super) fn tell_set(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        let HubJob { set: Some(set), runner, is_done, has_failed, .. } = job else { return };
        let runner = runner.map(|(runner, name)| (RunnerId(runner), name));
        let kind = match (is_done, runner) {
            (true, runner) => {
                let result = if has_failed { "failed" } else { "succeeded" };
                ScaleSetEventKind::Completed(result.into(), runner)
            }
            (false, Some((runner, name))) => ScaleSetEventKind::Started(runner, name),
            (false, None) => return,
        };
        self.add_event(set, id, kind);
        self.assign_up_to_capacity(set);
    }

    fn add_event(&mut self, set: u64, id: u64, kind: ScaleSetEventKind) {
        let (Some(set), Some(job)) = (self.sets.get_mut(&set), self.jobs.get(&id)) else { return };
        set.pending.push(ScaleSetEvent {
            kind,
            request: id,
            repository: RepositoryName { owner: "acme".into(), name: job.repository.clone() },
            name: "build".into(),
            run: job.run,
            labels: [job.label.clone()].into(),
        });
    }

    /// Whose session it is.
    fn of_session(&mut self, session: &SessionId) -> Result<u64, Failure> {
        let now = self.now;
        let found = self.sets.iter_mut().find_map(|(id, set)| {
            let (of, seen) = set.session.as_mut()?;
            (of == session).then(|| {
                *seen = now;
                *id
            })
        });
        found.ok_or_else(no_session)
    }

    /// A poll arrives; its answer comes later.
    pub(super) fn begin_poll(&mut self, session: &SessionId, last: u64, capacity: u32) -> Result<HubPoll, Failure> {
        if self.is_service_down {
            return Err(Failure::Transient("connection refused".into()));
        }
        let set = self.of_session(session)?;
        if let Some(found) = self.sets.get_mut(&set) {
            found.capacity = capacity;
        }
        self.assign_up_to_capacity(set);
        Ok(HubPoll { set, session: session.clone(), last, until: self.now + POLL })
    }

    /// The answer to a poll, once there is one.
    pub(super) fn poll(&mut self, poll: &HubPoll) -> Option<Result<Answer, Failure>> {
        if self.is_service_down {
            return Some(Err(Failure::Transient("connection reset".into())));
        }
        if let Err(failure) = self.of_session(&poll.session) {
            return Some(Err(failure));
        }
        let statistics = self.statistics(poll.set);
        let set = self.sets.get_mut(&poll.set)?;
        if !set.messages.iter().any(|message| message.id > poll.last) && !set.pending.is_empty() {
            let events = std::mem::take(&mut set.pending);
            set.last += 1;
            set.messages.push_back(Message { id: set.last, events, statistics });
        }
        match set.messages.iter().find(|message| message.id > poll.last) {
            Some(message) => Some(Ok(Answer::Message(Some(Box::new(message.clone()))))),
            None => (self.now >= poll.until).then_some(Ok(Answer::Message(None))),
        }
    }

    /// Carries out a request to the service, but for polls.
    pub(super) fn of_set(&mut self, ask: &ScaleSetAsk) -> Result<Answer, Failure> {
        if self.is_service_down {
            return Err(Failure::Transient("connection refused".into()));
        }
        let is_named = |set: &HubSet, name: &str, group: &Option<String>| set.name == *name && set.group == *group;
        match ask {
            ScaleSetAsk::Find { name, group } => {
                let found = self.sets.iter().find(|(_, set)| is_named(set, name, group)).map(|(id, _)| *id);
                Ok(Answer::ScaleSet(found.map(|id| Box::new(self.shown(id, false)))))
            }
            ScaleSetAsk::Read(set) => {
                let found = self.sets.contains_key(&set.0).then(|| Box::new(self.shown(set.0, false)));
                Ok(Answer::ScaleSet(found))
            }
            ScaleSetAsk::Ensure(wanted) => {
                let found = self.sets.iter().find(|(_, set)| is_named(set, &wanted.name, &wanted.group));
                let (id, is_new) = match found.map(|(id, _)| *id) {
                    Some(id) => (id, false),
                    None => (self.add_set(wanted), true),
                };
                Ok(Answer::ScaleSet(Some(Box::new(self.shown(id, is_new)))))
            }
            ScaleSetAsk::Delete(set) => {
                self.delete_set(set.0);
                Ok(Answer::Done)
            }
            ScaleSetAsk::Open { set, .. } => self.open(set.0),
            ScaleSetAsk::Close(session) => {
                if let Ok(set) = self.of_session(session)
                    && let Some(found) = self.sets.get_mut(&set)
                {
                    found.session = None;
                }
                Ok(Answer::Done)
            }
            ScaleSetAsk::Acknowledge { session, message } => {
                let set = self.of_session(session)?;
                if let Some(found) = self.sets.get_mut(&set) {
                    found.messages.retain(|found| found.id != *message);
                }
                Ok(Answer::Done)
            }
            ScaleSetAsk::Acquire { session, requests } => {
                let set = self.of_session(session)?;
                let acquired = requests.iter().copied().filter(|job| self.assign_to(set, *job)).collect();
                Ok(Answer::Acquired(acquired))
            }
            ScaleSetAsk::JitConfig { set, name } => match self.sets.contains_key(&set.0) {
                true => self.register(name, Some(set.0)),
                false => Err(no_set(set.0)),
            },
            ScaleSetAsk::RemoveRunner(id) => self.remove(*id),
            ScaleSetAsk::Poll { .. } => panic!("a poll is answered later"),
        }
    }

    fn open(&mut self, id: u64) -> Result<Answer, Failure> {
        self.sessions += 1;
        let (now, session) = (self.now, SessionId(format!("session-{}", self.sessions)));
        let set = self.sets.get_mut(&id).ok_or_else(|| no_set(id))?;
        if set.session.as_ref().is_some_and(|(_, seen)| now < seen + SESSION) {
            return Err(Failure::Taken("there is an active session".into()));
        }
        set.session = Some((session.clone(), now));
        set.messages.clear();
        set.pending.clear();
        if self.assignment == Assignment::Acquire {
            let set = &self.sets[&id];
            let open = self.jobs.iter().filter(|(_, job)| is_open(job) && fits(set, job));
            let open: Vec<u64> = open.map(|(job, _)| *job).collect();
            open.into_iter().for_each(|job| self.add_event(id, job, ScaleSetEventKind::Available));
        }
        Ok(Answer::Session(Session { id: session, statistics: self.statistics(id) }))
    }

    fn shown(&self, id: u64, is_new: bool) -> ScaleSet {
        let (set, statistics) = (&self.sets[&id], Some(self.statistics(id)));
        ScaleSet { id: ScaleSetId(id), name: set.name.clone(), labels: set.labels.clone(), statistics, is_new }
    }
}

fn is_open(job: &HubJob) -> bool {
    !job.is_done && job.runner.is_none() && job.set.is_none()
}

fn fits(set: &HubSet, job: &HubJob) -> bool {
    set.labels.contains(&job.label)
}

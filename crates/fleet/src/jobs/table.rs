//! Every job that is known, as all sources together say.
//!
//! An entry only ever grows: its state is the furthest one that was reported, its times are the earliest or the latest. So the order, the
//! number and the delay of observations make no difference.

use super::job::{Facts, JobKey, Observation, Repository, Source, State};
use super::story::{Story, What};
use change::now::later;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A job that has ended is kept for so long, for people who ask what became of it.
pub const KEPT: Duration = Duration::from_secs(3600);
/// An event about an unknown job that happened longer ago is looked up first: it may be a repetition about a job that was forgotten.
pub const FRESH: Duration = Duration::from_secs(600);
/// GitHub ends a job that no runner has taken for a day, and one that runs for five days.
const LONGEST: (Duration, Duration) = (Duration::from_secs(25 * 3_600), Duration::from_secs(5 * 24 * 3_600 + 3_600));
/// An answer about something that was said at the same moment is later than that.
const SHORT: Duration = Duration::from_millis(1);
/// No more jobs are kept; those that ended go first. Further ones are found by polls when there is room.
pub const MOST: usize = 50_000;

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What all sources together say.
    pub facts: Facts,
    /// When it was reported first, on our clock.
    pub first_seen: Timestamp,
    /// When its state was last seen to change, on our clock.
    pub changed: Timestamp,
    /// When it surely existed last.
    present: Timestamp,
    /// When a list of its repository was asked for that did not have it.
    unlisted: Option<Timestamp>,
    /// When GitHub was asked for it and said that there is no such job.
    absent: Option<Timestamp>,
    /// What happened to it.
    pub story: Story,
}

impl Job {
    /// Whether GitHub said that it does not exist, later than anything said that it does.
    pub fn is_gone(&self) -> bool {
        self.absent.is_some_and(|absent| absent > self.present)
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.facts.state != State::Completed && !self.is_gone()
    }

    /// Whether it needs a runner and none has started it.
    pub fn is_unmet(&self) -> bool {
        self.facts.state == State::Queued && self.is_open()
    }

    /// Whether it is open and was missing in a list, so that it has to be looked up.
    pub fn is_suspect(&self) -> bool {
        self.is_open() && self.unlisted.is_some_and(|unlisted| unlisted > self.present)
    }

    /// Whether nobody has said for so long that it is still open.
    pub fn is_unconfirmed(&self, since: Duration, now: Timestamp) -> bool {
        self.is_open() && matches!(self.facts.key, JobKey::Job { .. }) && later(self.present, since) <= now
    }

    /// Since when it waits: since it was created, or was reported.
    pub fn since(&self) -> Timestamp {
        self.facts.created.map_or(self.first_seen, |created| created.min(self.first_seen))
    }

    /// All that does not depend on when it was heard.
    #[cfg(test)]
    pub(super) fn truth(&self) -> (&Facts, Timestamp, Option<Timestamp>, Option<Timestamp>) {
        (&self.facts, self.present, self.unlisted, self.absent)
    }
}

/// What an observation changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A job that was not known.
    New,
    /// A known job is further than before.
    Advanced,
    /// Nothing that matters.
    Nothing,
    /// An old event about an unknown job: it has to be looked up before it is believed.
    Unproven,
    /// The table is full.
    Full,
}

/// What became of a look-up of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookUp {
    /// It exists.
    Found(Box<Facts>),
    /// GitHub answered that there is no such job.
    Absent,
    /// No answer, or another one: that says nothing about the job.
    Failed,
}

/// All open jobs of some repositories of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The organisation or the user, in lower case.
    pub owner: String,
    /// The repositories that were read: it says nothing about others.
    pub read: BTreeSet<Repository>,
    /// When it was asked for, on our clock.
    pub asked: Timestamp,
    /// The jobs.
    pub jobs: Vec<Facts>,
}

/// All jobs.
#[derive(Debug, Clone, Default)]
pub struct Table {
    jobs: BTreeMap<JobKey, Job>,
    /// The job that each runner has started; a runner of ours starts one.
    by_runner: BTreeMap<String, JobKey>,
}

impl Table {
    /// Takes an observation.
    pub fn observe(&mut self, observation: &Observation, received: Timestamp) -> Change {
        let Observation { source, at, facts } = observation;
        let known = self.jobs.get(&facts.key);
        // Ids are unique on a server: who names another repository is mistaken, or has it from before a transfer.
        if *source == Source::Webhook && known.is_some_and(|job| job.facts.repository != facts.repository) {
            return Change::Unproven;
        }
        let is_old = *source == Source::Webhook && later(*at, FRESH) < received;
        if is_old && facts.state != State::Completed && known.is_none() {
            return Change::Unproven;
        }
        self.join(facts, *source, *at, received)
    }

    /// Takes a complete list of open jobs.
    pub fn listed(&mut self, list: &List, received: Timestamp) {
        for facts in &list.jobs {
            self.join(facts, Source::Poll, list.asked, received);
        }
        let listed: BTreeSet<JobKey> = list.jobs.iter().map(|facts| facts.key).collect();
        for (key, job) in &mut self.jobs {
            // A job that was reported after the list was asked for is not missing in it.
            let is_due = matches!(key, JobKey::Job { .. }) && job.first_seen < list.asked;
            if is_due && job.is_open() && list.read.contains(&job.facts.repository) && !listed.contains(key) {
                job.unlisted = job.unlisted.max(Some(list.asked));
                if job.is_suspect() {
                    job.story.add(received, What::NotListed);
                }
            }
        }
    }

    /// Takes the answer to a look-up.
    pub fn looked_up(&mut self, key: &JobKey, asked: Timestamp, answer: &LookUp, received: Timestamp) -> Change {
        match answer {
            LookUp::Found(facts) => self.join(facts, Source::Poll, asked, received),
            LookUp::Failed => Change::Nothing,
            LookUp::Absent => {
                let Some(job) = self.jobs.get_mut(key) else { return Change::Nothing };
                let was_gone = job.is_gone();
                job.absent = job.absent.max(Some(asked));
                if was_gone || !job.is_gone() {
                    return Change::Nothing;
                }
                job.changed = received;
                job.story.add(received, What::Absent);
                Change::Advanced
            }
        }
    }

    fn join(&mut self, facts: &Facts, source: Source, at: Timestamp, received: Timestamp) -> Change {
        // The server itself names another repository than an event did: nothing that the event said is true.
        if source == Source::Poll
            && self.jobs.get(&facts.key).is_some_and(|job| job.facts.repository != facts.repository)
        {
            self.jobs.remove(&facts.key);
        }
        let became = || What::Became { state: facts.state, source, runner: facts.runner.clone() };
        if let Some(runner) = &facts.runner {
            // Two sources may name a job differently: the one that knows more counts.
            let known = self.by_runner.get(runner).and_then(|key| self.jobs.get(key));
            if known.is_none_or(|known| known.facts.state <= facts.state) {
                self.by_runner.insert(runner.clone(), facts.key);
            }
        }
        if let Some(job) = self.jobs.get_mut(&facts.key) {
            let (before, was_gone) = (job.facts.state, job.is_gone());
            job.facts.join(facts);
            job.present = job.present.max(at);
            if was_gone && !job.is_gone() {
                job.story.add(received, What::ListedAgain);
            }
            if job.facts.state == before {
                return Change::Nothing;
            }
            job.changed = received;
            job.story.add(received, became());
            return Change::Advanced;
        }
        if self.jobs.len() >= MOST && !self.drop_one() {
            return Change::Full;
        }
        let mut story = Story::default();
        story.add(received, became());
        let job = Job {
            facts: facts.clone(),
            first_seen: received,
            changed: received,
            present: at,
            unlisted: None,
            absent: None,
            story,
        };
        self.jobs.insert(facts.key, job);
        Change::New
    }

    /// A scale set says how many of its jobs are assigned, and how many are offered to it: what its messages said of others before is out of date.
    pub fn scale_set_stands(&mut self, scale_set: u64, assigned: u32, offered: u32, received: Timestamp) {
        self.end_requests(scale_set, received, received, |_, state| match state {
            State::Waiting => offered == 0,
            _ => assigned == 0,
        });
    }

    /// Requests that a scale set was offered and did not get.
    pub fn withdrawn(&mut self, scale_set: u64, requests: &BTreeSet<u64>, received: Timestamp) {
        let is_offer = |id: u64, state: State| state == State::Waiting && requests.contains(&id);
        self.end_requests(scale_set, later(received, SHORT), received, is_offer);
    }

    /// A scale set does not exist any more.
    pub fn scale_set_is_gone(&mut self, scale_set: u64, received: Timestamp) {
        self.end_requests(scale_set, later(received, SHORT), received, |_, _| true);
    }

    /// Ends requests as far as is known: a message that is later brings one back.
    fn end_requests(
        &mut self,
        scale_set: u64,
        absent: Timestamp,
        received: Timestamp,
        is_over: impl Fn(u64, State) -> bool,
    ) {
        for (key, job) in &mut self.jobs {
            let JobKey::Request { scale_set: of, id } = *key else { continue };
            if of != scale_set || !job.is_open() || !is_over(id, job.facts.state) {
                continue;
            }
            job.absent = job.absent.max(Some(absent));
            if job.is_gone() {
                job.changed = received;
                job.story.add(received, What::Absent);
            }
        }
    }

    /// Forgets jobs that ended a while ago, and those that must have ended: nobody could be asked about them since.
    pub fn prune(&mut self, now: Timestamp) {
        let must_have_ended = |job: &Job| match job.facts.state {
            State::Queued => job.is_unconfirmed(LONGEST.0, now),
            State::InProgress => job.is_unconfirmed(LONGEST.1, now),
            State::Waiting | State::Completed => false,
        };
        self.jobs.retain(|_, job| !must_have_ended(job));
        self.jobs.retain(|_, job| job.is_open() || later(job.changed, KEPT) > now);
        let jobs = &self.jobs;
        self.by_runner.retain(|_, key| jobs.contains_key(key));
    }

    /// Forgets these jobs.
    pub fn forget(&mut self, which: impl Fn(&Facts) -> bool) {
        self.jobs.retain(|_, job| !which(&job.facts));
    }

    /// Forgets the job that ended first; false if none has.
    fn drop_one(&mut self) -> bool {
        let ended = self.jobs.iter().filter(|(_, job)| !job.is_open()).min_by_key(|(_, job)| job.changed);
        let Some(key) = ended.map(|(key, _)| *key) else { return false };
        self.jobs.remove(&key).is_some()
    }

    /// One job.
    pub fn get(&self, key: &JobKey) -> Option<&Job> {
        self.jobs.get(key)
    }

    /// One job, to add to its story.
    pub fn story_of(&mut self, key: &JobKey) -> Option<&mut Story> {
        self.jobs.get_mut(key).map(|job| &mut job.story)
    }

    /// The job that a runner has started.
    pub fn of_runner(&self, runner: &str) -> Option<&Job> {
        self.jobs.get(self.by_runner.get(runner)?)
    }

    /// All jobs.
    pub fn all(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests;

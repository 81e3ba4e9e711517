//! A model of GitHub: jobs, runners, who gets which job, webhooks, and the limit of requests.

use super::random::Random;
use crate::jobs::job::{Facts, JobKey, Repository, State};
use crate::jobs::runners::Seen;
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const OWNER: &str = "acme";
/// The scale set of one of the pools.
pub(super) const SCALE_SET: u64 = 5;
/// Requests in an hour: few, so that they have to be spread.
pub(super) const LIMIT: u32 = 900;
const EPOCH: i64 = 1_800_000_000;

pub(super) fn wall(second: u64) -> Timestamp {
    Timestamp::from_second(EPOCH + i64::try_from(second).unwrap()).unwrap()
}

#[derive(Debug, Clone)]
pub(super) struct GithubJob {
    pub(super) facts: Facts,
    pub(super) created: u64,
    /// What lists show until then, because they are late.
    before: (State, u64),
    queued_at: u64,
    ends_at: u64,
    pub(super) runner: Option<u64>,
    pub(super) is_assigned: bool,
    pub(super) started: u64,
}

#[derive(Debug, Clone)]
pub(super) struct GithubRunner {
    pub(super) name: String,
    pub(super) labels: BTreeSet<String>,
    pub(super) is_online: bool,
    pub(super) job: Option<u64>,
    pub(super) is_of_scale_set: bool,
    /// Its machine is dead, which GitHub does not know until then.
    pub(super) lost: Option<u64>,
    created: u64,
    gone_at: Option<u64>,
}

pub(super) struct Github {
    pub(super) jobs: BTreeMap<u64, GithubJob>,
    pub(super) runners: BTreeMap<u64, GithubRunner>,
    /// Runners that were removed and are still listed.
    ghosts: Vec<(u64, Seen)>,
    pub(super) capacity: u32,
    pub(super) remaining: u32,
    pub(super) reset: u64,
    next: u64,
    /// Bodies of webhooks that are to be sent.
    pub(super) outbox: Vec<String>,
    /// What the scale set is told: a runner that has started or ended a job.
    pub(super) messages: u64,
    pub(super) has_news: bool,
    /// What is not in a message yet: requests and how they stand.
    pub(super) requests: Vec<Facts>,
    pub(super) broken: Vec<String>,
    pub(super) lag: u64,
}

pub(super) enum Removed {
    Yes,
    Busy,
}

impl Github {
    pub(super) fn new() -> Github {
        Github {
            jobs: BTreeMap::new(),
            runners: BTreeMap::new(),
            ghosts: Vec::new(),
            capacity: 0,
            remaining: LIMIT,
            reset: 3_600,
            next: 100,
            outbox: Vec::new(),
            messages: 0,
            has_news: true,
            requests: Vec::new(),
            broken: Vec::new(),
            lag: 0,
        }
    }

    pub(super) fn push(&mut self, repository: &str, labels: &[&str], random: &mut Random, now: u64) {
        self.next += 1;
        let is_held = random.chance(10);
        let facts = Facts {
            key: JobKey::Job { id: self.next, attempt: 1 },
            repository: Repository::new(OWNER, repository),
            run: 1_000 + self.next / 3,
            name: format!("build-{}", self.next),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            group: None,
            state: if is_held { State::Waiting } else { State::Queued },
            runner: None,
            conclusion: None,
            created: Some(wall(now)),
            started: None,
            completed: None,
        };
        self.add(facts, now, now + if is_held { random.between(5, 900) } else { 0 });
    }

    fn add(&mut self, facts: Facts, now: u64, queued_at: u64) {
        let JobKey::Job { id, .. } = facts.key else { return };
        let before = (State::Completed, now + self.lag);
        let job = GithubJob {
            facts,
            created: now,
            before,
            queued_at,
            ends_at: 0,
            runner: None,
            is_assigned: false,
            started: 0,
        };
        self.jobs.insert(id, job);
        self.tell(id);
    }

    /// Runs all jobs of an attempt again.
    fn run_again(&mut self, id: u64, now: u64) {
        let mut facts = self.jobs[&id].facts.clone();
        let JobKey::Job { attempt, .. } = facts.key else { return };
        self.next += 1;
        facts.key = JobKey::Job { id: self.next, attempt: attempt + 1 };
        (facts.state, facts.runner, facts.conclusion) = (State::Queued, None, None);
        (facts.created, facts.started, facts.completed) = (Some(wall(now)), None, None);
        self.add(facts, now, now);
    }

    /// A webhook about a job.
    fn tell(&mut self, id: u64) {
        let facts = &self.jobs[&id].facts;
        let JobKey::Job { attempt, .. } = facts.key else { return };
        let status = match facts.state {
            State::Waiting => "waiting",
            State::Queued => "queued",
            State::InProgress => "in_progress",
            State::Completed => "completed",
        };
        let body = json!({
            "action": status,
            "workflow_job": {
                "id": id, "run_id": facts.run, "run_attempt": attempt, "status": status, "conclusion": facts.conclusion,
                "name": facts.name, "labels": facts.labels, "runner_name": facts.runner,
                "created_at": facts.created, "started_at": facts.started.or(facts.created),
                "completed_at": facts.completed,
            },
            "repository": {"full_name": facts.repository.to_string()},
        });
        self.outbox.push(body.to_string());
        if facts.labels.contains("set") {
            self.has_news = true;
            if self.jobs[&id].is_assigned {
                self.request(id);
            }
        }
    }

    /// A message names a job by its request.
    fn request(&mut self, id: u64) {
        let facts = &self.jobs[&id].facts;
        let key = JobKey::Request { scale_set: SCALE_SET, id };
        self.requests.push(Facts { key, created: None, started: None, completed: None, ..facts.clone() });
    }

    fn change(&mut self, id: u64, now: u64, change: impl FnOnce(&mut GithubJob)) {
        let lag = self.lag;
        let job = self.jobs.get_mut(&id).unwrap();
        job.before = (job.facts.state, now + lag);
        change(job);
        self.tell(id);
    }

    fn finish(&mut self, id: u64, conclusion: &str, now: u64) {
        self.change(id, now, |job| {
            job.facts.state = State::Completed;
            job.facts.conclusion = Some(conclusion.into());
            job.facts.completed = Some(wall(now));
        });
        if let Some(runner) = self.jobs[&id].runner.and_then(|runner| self.runners.get_mut(&runner)) {
            runner.job = None;
            runner.is_online = false;
            // A machine that is dead does not deregister.
            runner.gone_at = runner.lost.is_none().then_some(now + 2);
        }
    }

    /// One second: jobs are approved, assigned, end, and are run again.
    pub(super) fn tick(&mut self, random: &mut Random, is_calm: bool, now: u64) {
        if now >= self.reset {
            (self.remaining, self.reset) = (LIMIT, self.reset + 3_600);
        }
        let ids: Vec<u64> = self.jobs.keys().copied().collect();
        for id in ids {
            let job = &self.jobs[&id];
            match job.facts.state {
                State::Waiting if job.queued_at <= now => self.change(id, now, |job| job.facts.state = State::Queued),
                State::Queued if !is_calm && random.below(4_000) == 0 => self.finish(id, "cancelled", now),
                State::Queued if random.chance(60) => self.assign(id, random, now),
                State::InProgress if job.ends_at <= now => {
                    self.finish(id, "success", now);
                    if !is_calm && random.chance(8) {
                        self.run_again(id, now);
                    }
                }
                State::InProgress => {
                    let lost = job.runner.and_then(|runner| self.runners.get(&runner)).and_then(|runner| runner.lost);
                    if lost.is_some_and(|lost| lost <= now) {
                        self.finish(id, "failure", now);
                    }
                }
                _ => {}
            }
        }
        let gone: Vec<u64> = self
            .runners
            .iter()
            .filter(|(_, runner)| runner.gone_at.is_some_and(|at| at <= now))
            .map(|(id, _)| *id)
            .collect();
        gone.into_iter().for_each(|id| self.forget(id, now));
        for runner in self.runners.values_mut().filter(|runner| runner.lost.is_some_and(|lost| lost <= now)) {
            runner.is_online = false;
        }
        self.ghosts.retain(|(until, _)| *until > now);
    }

    fn forget(&mut self, id: u64, now: u64) {
        if let Some(runner) = self.runners.remove(&id) {
            self.ghosts.push((now + self.lag, Seen { id, name: runner.name, is_online: false, is_busy: false }));
        }
    }

    /// Gives a job to any runner that has its labels: not always the one that was made for it.
    fn assign(&mut self, id: u64, random: &mut Random, now: u64) {
        let is_of_set = self.jobs[&id].facts.labels.contains("set");
        let assigned = self.jobs.values().filter(|job| job.is_assigned && job.facts.state != State::Completed).count();
        if is_of_set && !self.jobs[&id].is_assigned {
            if assigned < usize::try_from(self.capacity).unwrap() {
                self.jobs.get_mut(&id).unwrap().is_assigned = true;
                self.has_news = true;
                self.request(id);
            }
            return;
        }
        let wanted = &self.jobs[&id].facts.labels;
        let fits = |runner: &GithubRunner| {
            let is_free = runner.is_online && runner.job.is_none() && runner.gone_at.is_none();
            is_free && wanted.is_subset(&runner.labels) && runner.is_of_scale_set == is_of_set
        };
        let free: Vec<u64> = self.runners.iter().filter(|(_, runner)| fits(runner)).map(|(id, _)| *id).collect();
        if free.is_empty() {
            return;
        }
        let chosen = free[usize::try_from(random.below(free.len() as u64)).unwrap()];
        let runner = self.runners.get_mut(&chosen).unwrap();
        runner.job = Some(id);
        let (name, ends_at) = (runner.name.clone(), now + random.between(20, 240));
        if self.jobs[&id].started > 0 {
            self.broken.push(format!("job {id} was started twice"));
        }
        self.change(id, now, |job| {
            job.facts.state = State::InProgress;
            job.facts.runner = Some(name);
            job.facts.started = Some(wall(now));
            (job.runner, job.ends_at, job.started) = (Some(chosen), ends_at, now);
        });
    }

    pub(super) fn register(&mut self, name: &str, labels: &BTreeSet<String>, is_of_set: bool, now: u64) -> Option<u64> {
        if self.runners.values().any(|runner| runner.name == name) {
            return None;
        }
        self.next += 1;
        let runner = GithubRunner {
            name: name.into(),
            labels: labels.clone(),
            is_online: false,
            job: None,
            is_of_scale_set: is_of_set,
            lost: None,
            created: now,
            gone_at: None,
        };
        self.runners.insert(self.next, runner);
        Some(self.next)
    }

    pub(super) fn remove(&mut self, id: u64, now: u64) -> Removed {
        match self.runners.get(&id) {
            Some(runner) if runner.job.is_some() => Removed::Busy,
            _ => {
                self.forget(id, now);
                Removed::Yes
            }
        }
    }

    /// What a list of runners shows: some too late, some too long.
    pub(super) fn list_runners(&self, now: u64) -> Vec<Seen> {
        let shown = self.runners.iter().filter(|(_, runner)| runner.created + self.lag <= now);
        let seen = shown.map(|(id, runner)| Seen {
            id: *id,
            name: runner.name.clone(),
            is_online: runner.is_online,
            is_busy: runner.job.is_some(),
        });
        seen.chain(self.ghosts.iter().map(|(_, seen)| seen.clone())).collect()
    }

    /// A job as lists and look-ups show it.
    pub(super) fn list_jobs(&self, now: u64) -> Vec<Facts> {
        let shown = self.jobs.values().filter_map(|job| {
            let is_late = job.before.1 > now;
            let state = if is_late { job.before.0 } else { job.facts.state };
            let mut facts = job.facts.clone();
            facts.state = state;
            if state < State::InProgress {
                (facts.runner, facts.started) = (None, None);
            }
            (facts.completed, facts.conclusion) = (None, None);
            (state != State::Completed).then_some(facts)
        });
        shown.collect()
    }

    pub(super) fn open_runs(&self) -> usize {
        let open = self.jobs.values().filter(|job| job.facts.state != State::Completed);
        open.map(|job| job.facts.run).collect::<BTreeSet<u64>>().len()
    }

    /// Jobs that are assigned to the scale set and have not ended.
    pub(super) fn assigned(&self) -> u32 {
        let open = self.jobs.values().filter(|job| job.is_assigned && job.facts.state != State::Completed);
        u32::try_from(open.count()).unwrap()
    }

    /// A request is made.
    pub(super) fn spend(&mut self, cost: u32) {
        match self.remaining.checked_sub(cost) {
            Some(left) => self.remaining = left,
            None => self.broken.push(format!("the limit of requests is exceeded: {cost} of {}", self.remaining)),
        }
    }
}

//! What pipelines and runners do behind the API for people: jobs come, are given to runners, and end.

use crate::stand_in::{Job, Owner, StandIn};
use serde_json::{Value, json};
use std::time::Duration;

impl StandIn {
    /// A new job of a project, by the path of that; its id.
    pub fn push_job(&mut self, project: &str, tags: &[&str], now: Duration) -> u64 {
        let (id, pipeline) = (self.id(), self.id());
        let found = self.projects.iter().find(|(_, known)| known.path == project).map(|(id, _)| *id);
        let job = Job {
            project: found.unwrap_or_default(),
            pipeline,
            name: format!("build-{id}"),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            status: "pending".to_owned(),
            runner: None,
            created: now,
            started: None,
            finished: None,
        };
        self.jobs.insert(id, job);
        self.note(id);
        id
    }

    /// Sets how far a job is.
    pub fn set_status(&mut self, job: u64, status: &str) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.status = status.to_owned();
        }
    }

    /// A runner asks for a job with its token, which it does every few seconds; the job that it gets.
    pub fn runner_asks(&mut self, token: &str, now: Duration) -> Option<u64> {
        let (id, runner) = self.runners.iter_mut().find(|(_, runner)| runner.token == token)?;
        runner.contacted = Some(now);
        if runner.is_paused {
            return None;
        }
        let (id, runner) = (*id, runner.clone());
        let may_run = |job: &Job| {
            let project = self.projects.get(&job.project);
            let is_in_scope = match runner.owner {
                Owner::Instance => true,
                Owner::Project(project) => project == job.project,
                Owner::Group(group) => self
                    .groups
                    .get(&group)
                    .is_some_and(|group| project.is_some_and(|project| project.path.starts_with(&format!("{group}/")))),
            };
            let has_tags = match job.tags.is_empty() {
                true => runner.runs_untagged,
                false => job.tags.is_subset(&runner.tags),
            };
            job.status == "pending" && is_in_scope && has_tags
        };
        let found = self.jobs.iter().find(|(_, job)| may_run(job)).map(|(id, _)| *id)?;
        let job = self.jobs.get_mut(&found)?;
        job.status = "running".to_owned();
        job.runner = Some((id, runner.description));
        job.started = Some(now);
        self.note(found);
        Some(found)
    }

    /// A runner has ended a job, with `success` or `failed`.
    pub fn finish(&mut self, job: u64, status: &str, now: Duration) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.status = status.to_owned();
            job.finished = Some(now);
        }
        self.note(job);
    }

    /// Somebody tries a job again; the id of the new one.
    pub fn retry(&mut self, job: u64, now: Duration) -> Option<u64> {
        let old = self.jobs.get(&job)?.clone();
        let id = self.id();
        let new =
            Job { status: "pending".to_owned(), runner: None, created: now, started: None, finished: None, ..old };
        self.jobs.insert(id, new);
        self.note(id);
        Some(id)
    }

    /// A job has changed: its webhook is to be sent.
    fn note(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let path = self.projects.get(&job.project).map(|project| project.path.as_str()).unwrap_or_default();
        let time = |at: Option<Duration>| at.map(|at| self.time(at));
        let event = json!({
            "object_kind": "build", "ref": "main", "build_id": id, "build_name": job.name, "build_stage": "test",
            "build_status": job.status, "build_created_at": self.time(job.created), "build_started_at": time(job.started),
            "build_finished_at": time(job.finished), "pipeline_id": job.pipeline, "project_id": job.project,
            "project": {"id": job.project, "path_with_namespace": path},
            "runner": job.runner.as_ref().map(|(id, description)| json!({"id": id, "description": description})),
        });
        self.events.push(event);
    }

    /// The bodies of the webhooks that are to be sent since the last call.
    pub fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    /// Whether a runner has a job.
    pub fn is_busy(&self, runner: u64) -> bool {
        let is_its = |job: &Job| job.runner.as_ref().is_some_and(|(id, _)| *id == runner);
        self.jobs.values().any(|job| is_its(job) && matches!(job.status.as_str(), "running" | "canceling"))
    }
}

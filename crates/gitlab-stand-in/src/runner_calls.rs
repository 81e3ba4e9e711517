//! The calls that `gitlab-runner` makes, with the token of its runner or of its job.

use crate::answer::{Answer, Refusal, created, no_content, ok};
use crate::request::{Method, Request};
use crate::stand_in::StandIn;
use serde_json::json;

impl StandIn {
    /// Carries out what a runner asks; nothing if the request is none of a runner.
    pub(crate) fn of_runner(&mut self, request: &Request) -> Option<Answer> {
        let parts: Vec<&str> = request.path.iter().map(String::as_str).collect();
        match (request.method, parts.as_slice()) {
            (Method::Post, ["jobs", "request"]) => Some(self.request_job(request)),
            (Method::Put, ["jobs", job]) => Some(self.update_job(request, job)),
            _ => None,
        }
    }

    fn request_job(&mut self, request: &Request) -> Answer {
        let token = request.text("token").unwrap_or_default().to_owned();
        if !self.runners.values().any(|runner| runner.token == token) {
            return Err(Refusal::forbidden());
        }
        let Some(id) = self.runner_asks(&token, self.now) else { return no_content() };
        let job = &self.jobs[&id];
        let project = self.projects.get(&job.project).map(|project| project.path.as_str()).unwrap_or_default();
        created(json!({
            "id": id, "token": job_token(id), "allow_git_fetch": true, "job_info": {"name": job.name, "stage": "test"},
            "git_info": {"repo_url": format!("{}/{project}.git", self.setup.address), "ref": "main"},
        }))
    }

    /// Only the runner of the job knows its token.
    fn update_job(&mut self, request: &Request, job: &str) -> Answer {
        let id = job.parse().ok().filter(|id| request.text("token") == Some(job_token(*id).as_str()));
        let Some(job) = id.filter(|id| self.jobs.contains_key(id)) else { return Err(Refusal::forbidden()) };
        if let Some(state @ ("success" | "failed")) = request.text("state") {
            self.finish(job, state, self.now);
        }
        ok(json!(null))
    }
}

fn job_token(job: u64) -> String {
    format!("glcbt-{:020}", job.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

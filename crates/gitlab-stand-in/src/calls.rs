//! The calls of the API.

use crate::answer::{Answer, Refusal, created, no_content, ok};
use crate::request::{Method, Request};
use crate::stand_in::{Caller, Job, Owner, Project, Runner, StandIn};
use serde_json::{Value, json};
use std::time::Duration;

/// A runner that was not heard of for so long is offline.
const OFFLINE: Duration = Duration::from_secs(2 * 3600);
const READ: [&str; 2] = ["api", "read_api"];
const MANAGE: [&str; 2] = ["api", "manage_runner"];
const READ_RUNNERS: [&str; 3] = ["api", "read_api", "manage_runner"];

impl StandIn {
    pub(crate) fn dispatch(&mut self, request: &Request, caller: &Caller) -> Answer {
        let parts: Vec<&str> = request.path.iter().map(String::as_str).collect();
        match (request.method, parts.as_slice()) {
            (Method::Get, ["version"]) => {
                caller.need(&READ)?;
                ok(json!({"version": "18.5.1-ee", "revision": "0123456789a"}))
            }
            (Method::Get, ["personal_access_tokens", "self"]) => ok(token(caller)),
            (Method::Get, ["user"]) => {
                caller.need(&["api", "read_api", "read_user"])?;
                ok(user(caller))
            }
            (Method::Post, ["user", "runners"]) => self.create_runner(request, caller),
            (Method::Get, ["runners", "all"]) => {
                caller.need(&READ_RUNNERS)?;
                if !caller.token.is_admin {
                    return Err(Refusal::forbidden());
                }
                self.list_runners(request, |_| true)
            }
            (Method::Get, ["runners", id]) => {
                caller.need(&READ_RUNNERS)?;
                let id = self.managed(id, caller)?;
                ok(self.runner_details(id))
            }
            (Method::Put, ["runners", id]) => {
                caller.need(&MANAGE)?;
                let id = self.managed(id, caller)?;
                self.change_runner(request, id)
            }
            (Method::Delete, ["runners", id]) => {
                caller.need(&MANAGE)?;
                let id = self.managed(id, caller)?;
                self.runners.remove(&id);
                no_content()
            }
            (Method::Get, ["runners", id, "jobs"]) => {
                caller.need(&READ_RUNNERS)?;
                let id = self.managed(id, caller)?;
                let is_its = |job: &Job| job.runner.as_ref().is_some_and(|(runner, _)| *runner == id);
                let status = request.parameter("status");
                let mut found: Vec<Value> = self
                    .jobs
                    .iter()
                    .filter(|(_, job)| is_its(job) && status.is_none_or(|status| job.status == status))
                    // Others are left out without a word.
                    .filter(|(_, job)| self.path_of(job).is_some_and(|path| caller.level(path) >= 20))
                    .map(|(id, job)| self.job(*id, job))
                    .collect();
                found.reverse();
                self.page(request, found)
            }
            (Method::Get, ["groups", group, rest @ ..]) => {
                let id = self.seen_group(group, caller)?;
                self.group_call(request, caller, id, rest)
            }
            (Method::Get, ["projects"]) => {
                caller.need(&READ)?;
                let found = self.list_projects(request, |project| caller.level(&project.path) > 0);
                self.keyset(request, found)
            }
            (Method::Get, ["projects", project, rest @ ..]) => {
                let id = self.seen_project(project, caller)?;
                self.project_call(request, caller, id, rest)
            }
            _ => Err(Refusal::error(404, "404 Not Found")),
        }
    }

    fn group_call(&self, request: &Request, caller: &Caller, id: u64, rest: &[&str]) -> Answer {
        let path = self.groups.get(&id).cloned().unwrap_or_default();
        match rest {
            [] => {
                caller.need(&READ)?;
                ok(json!({"id": id, "path": path.rsplit('/').next(), "full_path": path}))
            }
            ["runners"] => {
                caller.need(&READ_RUNNERS)?;
                if caller.level(&path) < 40 {
                    return Err(Refusal::forbidden());
                }
                self.list_runners(request, |runner| runner.owner == Owner::Group(id))
            }
            ["projects"] => {
                caller.need(&READ)?;
                let below = format!("{path}/");
                let is_deep = request.asked("include_subgroups") == Some(true);
                let is_there = |project: &Project| {
                    let rest = project.path.strip_prefix(&below);
                    rest.is_some_and(|rest| is_deep || !rest.contains('/'))
                };
                let found = self.list_projects(request, is_there);
                self.page(request, found.into_iter().map(|(_, project)| project).collect())
            }
            ["members", "all", user] => member(caller, &path, user),
            _ => Err(Refusal::error(404, "404 Not Found")),
        }
    }

    fn project_call(&self, request: &Request, caller: &Caller, id: u64, rest: &[&str]) -> Answer {
        let Some(project) = self.projects.get(&id) else { return Err(Refusal::not_found("Project")) };
        match rest {
            [] => {
                caller.need(&READ)?;
                ok(project_entry(id, project))
            }
            ["runners"] => {
                caller.need(&READ_RUNNERS)?;
                if caller.level(&project.path) < 40 {
                    return Err(Refusal::forbidden());
                }
                self.list_runners(request, |runner| runner.owner == Owner::Project(id))
            }
            ["jobs"] => {
                caller.need(&READ)?;
                let scopes: Vec<&str> = request.list("scope").collect();
                let is_wanted = |job: &&Job| scopes.is_empty() || scopes.contains(&job.status.as_str());
                let of_project = self.jobs.iter().filter(|(_, job)| job.project == id);
                let found = of_project.filter(|(_, job)| is_wanted(job)).map(|(id, job)| (*id, self.job(*id, job)));
                match request.parameter("pagination") {
                    Some("keyset") => self.keyset(request, found.collect()),
                    _ => self.page(request, found.map(|(_, job)| job).rev().collect()),
                }
            }
            ["jobs", job] => {
                caller.need(&READ)?;
                let found = job.parse().ok().and_then(|job: u64| Some((job, self.jobs.get(&job)?)));
                let (job, found) = found.filter(|(_, job)| job.project == id).ok_or_else(|| Refusal::not_found(""))?;
                ok(self.job(job, found))
            }
            ["members", "all", user] => member(caller, &project.path, user),
            _ => Err(Refusal::error(404, "404 Not Found")),
        }
    }

    fn create_runner(&mut self, request: &Request, caller: &Caller) -> Answer {
        caller.need(&["api", "create_runner"])?;
        let owner = match (request.text("runner_type"), request.number("group_id"), request.number("project_id")) {
            (Some("instance_type"), None, None) if caller.token.is_admin => Owner::Instance,
            (Some("instance_type"), None, None) => return Err(Refusal::forbidden()),
            (Some("group_type"), Some(id), None) => match self.groups.get(&id) {
                Some(path) if caller.level(path) >= 50 => Owner::Group(id),
                Some(path) if caller.level(path) > 0 => return Err(Refusal::forbidden()),
                _ => return Err(Refusal::not_found("Group")),
            },
            (Some("project_type"), None, Some(id)) => match self.projects.get(&id) {
                Some(project) if caller.level(&project.path) >= 40 => Owner::Project(id),
                Some(project) if caller.level(&project.path) > 0 => return Err(Refusal::forbidden()),
                _ => return Err(Refusal::not_found("Project")),
            },
            _ => return Err(Refusal::error(400, "runner_type does not have a valid value")),
        };
        let tags: Vec<String> = request.texts("tag_list").into_iter().filter(|tag| !tag.is_empty()).collect();
        let runs_untagged = request.flag("run_untagged").unwrap_or(true);
        if tags.is_empty() && !runs_untagged {
            let text = "Tags list can not be empty when runner is not allowed to pick untagged jobs";
            return Err(Refusal::new(400, text));
        }
        let id = self.id();
        let token = format!("glrt-t{id}_{:020}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let runner = Runner {
            token: token.clone(),
            description: request.text("description").unwrap_or_default().to_owned(),
            tags: tags.into_iter().collect(),
            runs_untagged,
            is_locked: request.flag("locked").unwrap_or(false),
            is_paused: request.flag("paused").unwrap_or(false),
            owner,
            contacted: None,
            created: self.now,
        };
        self.runners.insert(id, runner);
        created(json!({"id": id, "token": token, "token_expires_at": null}))
    }

    fn change_runner(&mut self, request: &Request, id: u64) -> Answer {
        if let Some(runner) = self.runners.get_mut(&id) {
            runner.is_paused = request.flag("paused").unwrap_or(runner.is_paused);
        }
        ok(self.runner_details(id))
    }

    /// A runner that the caller manages.
    fn managed(&self, id: &str, caller: &Caller) -> Result<u64, Refusal> {
        let found = id.parse().ok().and_then(|id: u64| Some((id, self.runners.get(&id)?)));
        let (id, runner) = found.ok_or_else(|| Refusal::not_found("Runner"))?;
        let path = match runner.owner {
            Owner::Instance => None,
            Owner::Group(group) => self.groups.get(&group),
            Owner::Project(project) => self.projects.get(&project).map(|project| &project.path),
        };
        match path.map_or(caller.token.is_admin, |path| caller.level(path) >= 40) {
            true => Ok(id),
            false => Err(Refusal::new(403, "403 Forbidden - No access granted")),
        }
    }

    fn seen_group(&self, name: &str, caller: &Caller) -> Result<u64, Refusal> {
        let is_it = |id: u64, path: &str| path.eq_ignore_ascii_case(name) || id.to_string() == name;
        let found = self.groups.iter().find(|(id, path)| is_it(**id, path) && caller.level(path) > 0);
        found.map(|(id, _)| *id).ok_or_else(|| Refusal::not_found("Group"))
    }

    fn seen_project(&self, name: &str, caller: &Caller) -> Result<u64, Refusal> {
        let is_it = |id: u64, path: &str| path.eq_ignore_ascii_case(name) || id.to_string() == name;
        let found = self.projects.iter().find(|(id, found)| is_it(**id, &found.path) && caller.level(&found.path) > 0);
        found.map(|(id, _)| *id).ok_or_else(|| Refusal::not_found("Project"))
    }

    fn list_projects(&self, request: &Request, is_wanted: impl Fn(&Project) -> bool) -> Vec<(u64, Value)> {
        let hides_archived = request.asked("archived") == Some(false);
        let all =
            self.projects.iter().filter(|(_, project)| is_wanted(project) && !(hides_archived && project.is_archived));
        all.map(|(id, project)| (*id, project_entry(*id, project))).collect()
    }

    fn list_runners(&self, request: &Request, is_wanted: impl Fn(&Runner) -> bool) -> Answer {
        let kind = request.parameter("type");
        let all = self.runners.iter().filter(|(_, runner)| is_wanted(runner));
        let found = all.filter(|(_, runner)| kind.is_none_or(|kind| kind == kind_of(runner)));
        self.page(request, found.map(|(id, runner)| self.runner(*id, runner)).rev().collect())
    }

    fn runner(&self, id: u64, runner: &Runner) -> Value {
        let is_online = runner.contacted.is_some_and(|at| self.now.saturating_sub(at) < OFFLINE);
        let status = match (runner.contacted, is_online) {
            (None, _) => "never_contacted",
            (_, true) => "online",
            (_, false) => "offline",
        };
        let mut entry = json!({
            "id": id, "description": runner.description, "ip_address": null, "active": !runner.is_paused, "paused": runner.is_paused,
            "is_shared": runner.owner == Owner::Instance, "runner_type": kind_of(runner), "online": is_online, "status": status,
            "name": runner.contacted.map(|_| "gitlab-runner"), "created_at": self.time(runner.created),
        });
        if self.setup.says_busy {
            entry["job_execution_status"] = if self.is_busy(id) { "active" } else { "idle" }.into();
        }
        entry
    }

    fn runner_details(&self, id: u64) -> Value {
        let Some(runner) = self.runners.get(&id) else { return Value::Null };
        let mut entry = self.runner(id, runner);
        entry["tag_list"] = runner.tags.iter().cloned().collect::<Vec<_>>().into();
        entry["run_untagged"] = runner.runs_untagged.into();
        entry["locked"] = runner.is_locked.into();
        entry["access_level"] = "not_protected".into();
        entry["contacted_at"] = runner.contacted.map(|at| self.time(at)).into();
        entry
    }

    fn path_of(&self, job: &Job) -> Option<&str> {
        self.projects.get(&job.project).map(|project| project.path.as_str())
    }

    fn job(&self, id: u64, job: &Job) -> Value {
        let time = |at: Option<Duration>| at.map(|at| self.time(at));
        let path = self.path_of(job).unwrap_or_default();
        json!({
            "id": id, "name": job.name, "stage": "test", "status": job.status, "ref": "main", "tag": false, "allow_failure": false,
            "created_at": self.time(job.created), "started_at": time(job.started), "finished_at": time(job.finished),
            "tag_list": job.tags, "web_url": format!("{}/{path}/-/jobs/{id}", self.setup.address),
            "pipeline": {"id": job.pipeline, "project_id": job.project, "ref": "main", "status": job.status},
            "runner": job.runner.as_ref().map(|(id, description)| json!({
                "id": id, "description": description, "active": true, "is_shared": false, "name": "gitlab-runner",
            })),
        })
    }
}

fn kind_of(runner: &Runner) -> &'static str {
    match runner.owner {
        Owner::Instance => "instance_type",
        Owner::Group(_) => "group_type",
        Owner::Project(_) => "project_type",
    }
}

fn project_entry(id: u64, project: &Project) -> Value {
    json!({
        "id": id, "path": project.path.rsplit('/').next(), "path_with_namespace": project.path, "archived": project.is_archived,
    })
}

fn token(caller: &Caller) -> Value {
    json!({
        "id": caller.id, "name": caller.token.name, "revoked": false, "active": true, "scopes": caller.token.scopes,
        "user_id": caller.id, "expires_at": caller.token.expires,
    })
}

fn user(caller: &Caller) -> Value {
    let mut user =
        json!({"id": caller.id, "username": caller.token.name, "name": caller.token.name, "state": "active"});
    if caller.token.is_admin {
        user["is_admin"] = true.into();
    }
    user
}

/// The own membership; others are not asked for.
fn member(caller: &Caller, path: &str, user: &str) -> Answer {
    caller.need(&READ)?;
    let level = if caller.token.is_admin { 0 } else { caller.level(path) };
    match user == caller.id.to_string() && level > 0 {
        true => ok(json!({"id": caller.id, "username": caller.token.name, "access_level": level, "expires_at": null})),
        false => Err(Refusal::not_found("")),
    }
}

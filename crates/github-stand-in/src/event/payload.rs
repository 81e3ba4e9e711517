//! The bodies of webhooks, and of the REST API where they are the same.

use crate::job::{Job, JobState, Run};
use crate::names::RepositoryName;
use crate::setup::Setup;
use crate::stand_in::StandIn;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A number for a name, as the ids of people and repositories.
fn id_of(text: &str) -> u64 {
    text.bytes().fold(7, |sum, byte| (sum * 31 + u64::from(byte)) % 900_000_007) + 1000
}

fn node_id(kind: &str, id: u64) -> String {
    STANDARD.encode(format!("{kind}{id}"))
}

/// The body of a `workflow_job` event.
pub(super) fn workflow_job(state: &StandIn, job: &Job, action: &str, has_installation: bool) -> Value {
    let mut body = json!({
        "action": action,
        "workflow_job": job_json(state, job),
        "repository": repository_json(state, &job.spec.repository),
        "organization": organization_json(state, &job.spec.repository.owner),
        "sender": user_json(state, "octocat", "User"),
    });
    if has_installation {
        let id = Setup::INSTALLATION;
        body["installation"] = json!({"id": id, "node_id": node_id("IntegrationInstallation", id)});
    }
    body
}

/// A job.
pub(crate) fn job_json(state: &StandIn, job: &Job) -> Value {
    let (api, repository) = (state.api(), &job.spec.repository);
    let on = job.ran_on();
    let completed = match &job.state {
        JobState::Completed { at, .. } => Some(state.date(*at)),
        _ => None,
    };
    let conclusion = job.conclusion().map(crate::Conclusion::as_str);
    let mut steps = Vec::new();
    if let Some(on) = on {
        steps.push(json!({
            "name": "Set up job",
            "status": job.status(),
            "conclusion": conclusion,
            "number": 1,
            "started_at": state.date(on.since),
            "completed_at": completed,
        }));
    }
    json!({
        "id": job.id,
        "run_id": job.run,
        "run_url": format!("{api}/repos/{repository}/actions/runs/{}", job.run),
        "run_attempt": job.attempt,
        "workflow_name": "CI",
        "head_branch": "main",
        "node_id": node_id("CheckRun", job.id),
        "head_sha": head_sha(job.run),
        "url": format!("{api}/repos/{repository}/actions/jobs/{}", job.id),
        "html_url": format!("{}/{repository}/actions/runs/{}/job/{}", state.address, job.run, job.id),
        "status": job.status(),
        "conclusion": conclusion,
        "created_at": state.date(job.created),
        "started_at": state.date(on.map_or(job.created, |on| on.since)),
        "completed_at": completed,
        "name": job.spec.name,
        "steps": steps,
        "check_run_url": format!("{api}/repos/{repository}/check-runs/{}", job.id),
        "labels": job.spec.labels,
        "runner_id": on.map(|on| on.id),
        "runner_name": on.map(|on| on.name.clone()),
        "runner_group_id": on.map(|on| on.group),
        "runner_group_name": on.map(|on| on.group_name.clone()),
    })
}

fn head_sha(run: u64) -> String {
    format!("{:040x}", u128::from(run) * 0x9E37_79B9_7F4A_7C15)
}

/// A run, with the status that its jobs of an attempt make up.
pub(crate) fn run_json(state: &StandIn, run: &Run, attempt: u64) -> Value {
    let (api, repository) = (state.api(), &run.repository);
    let url = format!("{api}/repos/{repository}/actions/runs/{}", run.id);
    let (status, conclusion) = state.run_status(run.id, attempt);
    let head = json!({
        "id": head_sha(run.id),
        "tree_id": head_sha(run.id + 1),
        "message": "Change something",
        "timestamp": state.date(run.created),
        "author": {"name": "Mona", "email": "mona@github.example"},
        "committer": {"name": "Mona", "email": "mona@github.example"},
    });
    json!({
        "id": run.id,
        "name": "CI",
        "node_id": node_id("WorkflowRun", run.id),
        "head_branch": "main",
        "head_sha": head_sha(run.id),
        "path": ".github/workflows/ci.yml",
        "display_title": "Change something",
        "run_number": run.number,
        "event": "push",
        "status": status,
        "conclusion": conclusion,
        "workflow_id": 161_335,
        "check_suite_id": run.id + 1,
        "check_suite_node_id": node_id("CheckSuite", run.id + 1),
        "url": url,
        "html_url": format!("{}/{repository}/actions/runs/{}", state.address, run.id),
        "pull_requests": [],
        "created_at": state.date(run.created),
        "updated_at": state.date(run.started),
        "actor": user_json(state, "octocat", "User"),
        "run_attempt": attempt,
        "run_started_at": state.date(run.started),
        "triggering_actor": user_json(state, "octocat", "User"),
        "jobs_url": format!("{url}/jobs"),
        "logs_url": format!("{url}/logs"),
        "check_suite_url": format!("{api}/repos/{repository}/check-suites/{}", run.id + 1),
        "artifacts_url": format!("{url}/artifacts"),
        "cancel_url": format!("{url}/cancel"),
        "rerun_url": format!("{url}/rerun"),
        "previous_attempt_url": (attempt > 1).then(|| format!("{url}/attempts/{}", attempt - 1)),
        "workflow_url": format!("{api}/repos/{repository}/actions/workflows/161335"),
        "head_commit": head,
        "repository": repository_json(state, repository),
        "head_repository": repository_json(state, repository),
    })
}

/// A person or an organisation as the owner of something.
pub(crate) fn user_json(state: &StandIn, login: &str, kind: &str) -> Value {
    if state.has_short_payloads {
        return json!({"login": login, "id": id_of(login), "type": kind});
    }
    let (id, url) = (id_of(login), format!("{}/users/{login}", state.api()));
    let mut user = json!({
        "login": login,
        "id": id,
        "node_id": node_id("User", id),
        "avatar_url": format!("{}/avatars/u/{id}?v=4", state.address),
        "gravatar_id": "",
        "url": url,
        "html_url": format!("{}/{login}", state.address),
        "type": kind,
        "site_admin": false,
    });
    for (name, part) in [
        ("followers_url", "followers"),
        ("following_url", "following{/other_user}"),
        ("gists_url", "gists{/gist_id}"),
        ("starred_url", "starred{/owner}{/repo}"),
        ("subscriptions_url", "subscriptions"),
        ("organizations_url", "orgs"),
        ("repos_url", "repos"),
        ("events_url", "events{/privacy}"),
        ("received_events_url", "received_events"),
    ] {
        user[name] = format!("{url}/{part}").into();
    }
    user
}

fn organization_json(state: &StandIn, login: &str) -> Value {
    if state.has_short_payloads {
        return json!({"login": login, "id": id_of(login)});
    }
    let (id, url) = (id_of(login), format!("{}/orgs/{login}", state.api()));
    json!({
        "login": login,
        "id": id,
        "node_id": node_id("Organization", id),
        "url": url,
        "repos_url": format!("{url}/repos"),
        "events_url": format!("{url}/events"),
        "hooks_url": format!("{url}/hooks"),
        "issues_url": format!("{url}/issues"),
        "members_url": format!("{url}/members{{/member}}"),
        "public_members_url": format!("{url}/public_members{{/member}}"),
        "avatar_url": format!("{}/avatars/u/{id}?v=4", state.address),
        "description": "",
    })
}

/// Addresses below that of a repository.
const REPOSITORY_URLS: &[(&str, &str)] = &[
    ("forks_url", "forks"),
    ("keys_url", "keys{/key_id}"),
    ("collaborators_url", "collaborators{/collaborator}"),
    ("teams_url", "teams"),
    ("hooks_url", "hooks"),
    ("issue_events_url", "issues/events{/number}"),
    ("events_url", "events"),
    ("assignees_url", "assignees{/user}"),
    ("branches_url", "branches{/branch}"),
    ("tags_url", "tags"),
    ("blobs_url", "git/blobs{/sha}"),
    ("git_tags_url", "git/tags{/sha}"),
    ("git_refs_url", "git/refs{/sha}"),
    ("trees_url", "git/trees{/sha}"),
    ("statuses_url", "statuses/{sha}"),
    ("languages_url", "languages"),
    ("stargazers_url", "stargazers"),
    ("contributors_url", "contributors"),
    ("subscribers_url", "subscribers"),
    ("subscription_url", "subscription"),
    ("commits_url", "commits{/sha}"),
    ("git_commits_url", "git/commits{/sha}"),
    ("comments_url", "comments{/number}"),
    ("issue_comment_url", "issues/comments{/number}"),
    ("contents_url", "contents/{+path}"),
    ("compare_url", "compare/{base}...{head}"),
    ("merges_url", "merges"),
    ("archive_url", "{archive_format}{/ref}"),
    ("downloads_url", "downloads"),
    ("issues_url", "issues{/number}"),
    ("pulls_url", "pulls{/number}"),
    ("milestones_url", "milestones{/number}"),
    ("notifications_url", "notifications{?since,all,participating}"),
    ("labels_url", "labels{/name}"),
    ("releases_url", "releases{/id}"),
    ("deployments_url", "deployments"),
];

/// A repository.
pub(crate) fn repository_json(state: &StandIn, name: &RepositoryName) -> Value {
    let is_public = state.repositories.get(name).is_some_and(|found| found.is_public);
    if state.has_short_payloads {
        let owner = user_json(state, &name.owner, "Organization");
        let full_name = name.to_string();
        return json!({
            "id": id_of(&full_name),
            "name": name.name,
            "full_name": full_name,
            "private": !is_public,
            "owner": owner,
        });
    }
    let (id, url) = (id_of(&name.to_string()), format!("{}/repos/{name}", state.api()));
    let (page, host) = (format!("{}/{name}", state.address), state.address.trim_start_matches("https://"));
    let created = state.date(std::time::Duration::ZERO);
    let mut repository = json!({
        "id": id,
        "node_id": node_id("Repository", id),
        "name": name.name,
        "full_name": name.to_string(),
        "private": !is_public,
        "owner": user_json(state, &name.owner, "Organization"),
        "html_url": page,
        "description": null,
        "fork": false,
        "url": url,
        "created_at": created,
        "updated_at": created,
        "pushed_at": created,
        "git_url": format!("git://{host}/{name}.git"),
        "ssh_url": format!("git@{host}:{name}.git"),
        "clone_url": format!("{page}.git"),
        "svn_url": page,
        "homepage": null,
        "language": null,
        "mirror_url": null,
        "license": null,
        "topics": [],
        "custom_properties": {},
        "visibility": if is_public { "public" } else { "private" },
        "default_branch": "main",
    });
    for (key, part) in REPOSITORY_URLS {
        repository[*key] = format!("{url}/{part}").into();
    }
    for key in ["size", "stargazers_count", "watchers_count", "forks_count", "open_issues_count"] {
        repository[key] = 0.into();
    }
    for key in ["forks", "open_issues", "watchers"] {
        repository[key] = 0.into();
    }
    for key in ["has_issues", "has_projects", "has_downloads", "has_wiki", "has_discussions", "allow_forking"] {
        repository[key] = true.into();
    }
    for key in ["has_pages", "archived", "disabled", "is_template", "web_commit_signoff_required"] {
        repository[key] = false.into();
    }
    repository
}

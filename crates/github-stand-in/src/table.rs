//! All calls that are served.

use crate::calls::{app, groups, hooks, machine, repositories, runners, workflows};
use crate::request::Method::{self, Delete, Get, Patch, Post, Put};
use crate::route::{Need, Route, Run};
use crate::service::{agents, messages, scale_sets, sessions};

const RUNNERS: &str = "rest/actions/self-hosted-runners";
const GROUPS: &str = "rest/actions/self-hosted-runner-groups";
const RUNS: &str = "rest/actions/workflow-runs";
const JOBS: &str = "rest/actions/workflow-jobs";
const ORG_HOOKS: &str = "rest/orgs/webhooks";
const REPO_HOOKS: &str = "rest/repos/webhooks";
const APPS: &str = "rest/apps/apps";
const INSTALLATIONS: &str = "rest/apps/installations";
const REPOS: &str = "rest/repos/repos";
const APP_HOOKS: &str = "rest/apps/webhooks";

const fn route(method: Method, path: &'static str, need: Need, documentation: &'static str, run: Run) -> Route {
    Route { method, path, need, documentation, run }
}

const fn runner(method: Method, path: &'static str, run: Run) -> Route {
    route(method, path, Need::Runners, RUNNERS, run)
}

const fn group(method: Method, path: &'static str, run: Run) -> Route {
    route(method, path, Need::Runners, GROUPS, run)
}

const fn actions(method: Method, path: &'static str, documentation: &'static str, run: Run) -> Route {
    route(method, path, Need::Actions, documentation, run)
}

const fn org_hook(method: Method, path: &'static str, run: Run) -> Route {
    route(method, path, Need::Hooks, ORG_HOOKS, run)
}

const fn repo_hook(method: Method, path: &'static str, run: Run) -> Route {
    route(method, path, Need::Hooks, REPO_HOOKS, run)
}

const fn service(method: Method, path: &'static str, run: Run) -> Route {
    route(method, path, Need::Service, "rest", run)
}

const fn queue(method: Method, path: &'static str, run: Run) -> Route {
    route(method, path, Need::Queue, "rest", run)
}

/// All calls that are served.
pub const ROUTES: &[Route] = &[
    route(Get, "/meta", Need::Nothing, "rest/meta/meta", app::meta),
    route(Get, "/rate_limit", Need::Nothing, "rest/rate-limit/rate-limit", app::rate_limit),
    route(Get, "/app", Need::App, APPS, app::app),
    route(Get, "/app/installations", Need::App, APPS, app::installations),
    route(Get, "/app/installations/{installation_id}", Need::App, APPS, app::installation),
    route(Get, "/orgs/{org}/installation", Need::App, APPS, app::installation),
    route(Get, "/repos/{owner}/{repo}/installation", Need::App, APPS, app::installation),
    route(Post, "/app/installations/{installation_id}/access_tokens", Need::App, APPS, app::access_token),
    route(Get, "/app/hook/config", Need::App, APP_HOOKS, hooks::config),
    route(Patch, "/app/hook/config", Need::App, APP_HOOKS, hooks::update_config),
    route(Get, "/app/hook/deliveries", Need::App, APP_HOOKS, hooks::deliveries),
    route(Get, "/app/hook/deliveries/{delivery_id}", Need::App, APP_HOOKS, hooks::delivery),
    route(Post, "/app/hook/deliveries/{delivery_id}/attempts", Need::App, APP_HOOKS, hooks::redeliver),
    route(Get, "/orgs/{org}/repos", Need::Metadata, REPOS, repositories::of_organization),
    route(Get, "/repos/{owner}/{repo}", Need::Metadata, REPOS, repositories::read),
    route(Get, "/installation/repositories", Need::Metadata, INSTALLATIONS, repositories::of_installation),
    // Runners of an organisation.
    runner(Get, "/orgs/{org}/actions/runners", runners::list),
    runner(Get, "/orgs/{org}/actions/runners/downloads", runners::downloads),
    runner(Post, "/orgs/{org}/actions/runners/registration-token", app::registration_token),
    runner(Post, "/orgs/{org}/actions/runners/remove-token", app::registration_token),
    runner(Post, "/orgs/{org}/actions/runners/generate-jitconfig", runners::generate_jit),
    runner(Get, "/orgs/{org}/actions/runners/{runner_id}", runners::read),
    runner(Delete, "/orgs/{org}/actions/runners/{runner_id}", runners::delete),
    runner(Get, "/orgs/{org}/actions/runners/{runner_id}/labels", runners::labels),
    runner(Post, "/orgs/{org}/actions/runners/{runner_id}/labels", runners::add_labels),
    runner(Put, "/orgs/{org}/actions/runners/{runner_id}/labels", runners::set_labels),
    runner(Delete, "/orgs/{org}/actions/runners/{runner_id}/labels", runners::set_labels),
    runner(Delete, "/orgs/{org}/actions/runners/{runner_id}/labels/{name}", runners::remove_label),
    group(Get, "/orgs/{org}/actions/runner-groups", groups::list),
    group(Post, "/orgs/{org}/actions/runner-groups", groups::create),
    group(Get, "/orgs/{org}/actions/runner-groups/{runner_group_id}", groups::read),
    group(Delete, "/orgs/{org}/actions/runner-groups/{runner_group_id}", groups::delete),
    group(Get, "/orgs/{org}/actions/runner-groups/{runner_group_id}/runners", groups::runners),
    // Runners of a repository.
    runner(Get, "/repos/{owner}/{repo}/actions/runners", runners::list),
    runner(Get, "/repos/{owner}/{repo}/actions/runners/downloads", runners::downloads),
    runner(Post, "/repos/{owner}/{repo}/actions/runners/registration-token", app::registration_token),
    runner(Post, "/repos/{owner}/{repo}/actions/runners/remove-token", app::registration_token),
    runner(Post, "/repos/{owner}/{repo}/actions/runners/generate-jitconfig", runners::generate_jit),
    runner(Get, "/repos/{owner}/{repo}/actions/runners/{runner_id}", runners::read),
    runner(Delete, "/repos/{owner}/{repo}/actions/runners/{runner_id}", runners::delete),
    runner(Get, "/repos/{owner}/{repo}/actions/runners/{runner_id}/labels", runners::labels),
    runner(Post, "/repos/{owner}/{repo}/actions/runners/{runner_id}/labels", runners::add_labels),
    runner(Put, "/repos/{owner}/{repo}/actions/runners/{runner_id}/labels", runners::set_labels),
    runner(Delete, "/repos/{owner}/{repo}/actions/runners/{runner_id}/labels", runners::set_labels),
    runner(Delete, "/repos/{owner}/{repo}/actions/runners/{runner_id}/labels/{name}", runners::remove_label),
    // Runners of the enterprise.
    runner(Get, "/enterprises/{enterprise}/actions/runners", runners::list),
    runner(Get, "/enterprises/{enterprise}/actions/runners/downloads", runners::downloads),
    runner(Post, "/enterprises/{enterprise}/actions/runners/registration-token", app::registration_token),
    runner(Post, "/enterprises/{enterprise}/actions/runners/remove-token", app::registration_token),
    runner(Post, "/enterprises/{enterprise}/actions/runners/generate-jitconfig", runners::generate_jit),
    runner(Get, "/enterprises/{enterprise}/actions/runners/{runner_id}", runners::read),
    runner(Delete, "/enterprises/{enterprise}/actions/runners/{runner_id}", runners::delete),
    group(Get, "/enterprises/{enterprise}/actions/runner-groups", groups::list),
    group(Post, "/enterprises/{enterprise}/actions/runner-groups", groups::create),
    group(Get, "/enterprises/{enterprise}/actions/runner-groups/{runner_group_id}", groups::read),
    group(Delete, "/enterprises/{enterprise}/actions/runner-groups/{runner_group_id}", groups::delete),
    group(Get, "/enterprises/{enterprise}/actions/runner-groups/{runner_group_id}/runners", groups::runners),
    // Runs and jobs.
    actions(Get, "/repos/{owner}/{repo}/actions/runs", RUNS, workflows::runs),
    actions(Get, "/repos/{owner}/{repo}/actions/runs/{run_id}", RUNS, workflows::run),
    actions(Get, "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}", RUNS, workflows::attempt),
    actions(Get, "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs", JOBS, workflows::jobs_of_run),
    actions(
        Get,
        "/repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}/jobs",
        JOBS,
        workflows::jobs_of_attempt,
    ),
    actions(Post, "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun", RUNS, workflows::rerun),
    actions(Post, "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs", RUNS, workflows::rerun_failed),
    actions(Post, "/repos/{owner}/{repo}/actions/runs/{run_id}/cancel", RUNS, workflows::cancel),
    actions(Post, "/repos/{owner}/{repo}/actions/runs/{run_id}/force-cancel", RUNS, workflows::cancel),
    actions(Get, "/repos/{owner}/{repo}/actions/jobs/{job_id}", JOBS, workflows::job),
    actions(Post, "/repos/{owner}/{repo}/actions/jobs/{job_id}/rerun", RUNS, workflows::rerun_job),
    // Hooks.
    org_hook(Get, "/orgs/{org}/hooks", hooks::list),
    org_hook(Post, "/orgs/{org}/hooks", hooks::create),
    org_hook(Get, "/orgs/{org}/hooks/{hook_id}", hooks::read),
    org_hook(Patch, "/orgs/{org}/hooks/{hook_id}", hooks::update),
    org_hook(Delete, "/orgs/{org}/hooks/{hook_id}", hooks::delete),
    org_hook(Get, "/orgs/{org}/hooks/{hook_id}/config", hooks::config),
    org_hook(Patch, "/orgs/{org}/hooks/{hook_id}/config", hooks::update_config),
    org_hook(Post, "/orgs/{org}/hooks/{hook_id}/pings", hooks::ping),
    org_hook(Get, "/orgs/{org}/hooks/{hook_id}/deliveries", hooks::deliveries),
    org_hook(Get, "/orgs/{org}/hooks/{hook_id}/deliveries/{delivery_id}", hooks::delivery),
    org_hook(Post, "/orgs/{org}/hooks/{hook_id}/deliveries/{delivery_id}/attempts", hooks::redeliver),
    repo_hook(Get, "/repos/{owner}/{repo}/hooks", hooks::list),
    repo_hook(Post, "/repos/{owner}/{repo}/hooks", hooks::create),
    repo_hook(Get, "/repos/{owner}/{repo}/hooks/{hook_id}", hooks::read),
    repo_hook(Patch, "/repos/{owner}/{repo}/hooks/{hook_id}", hooks::update),
    repo_hook(Delete, "/repos/{owner}/{repo}/hooks/{hook_id}", hooks::delete),
    repo_hook(Get, "/repos/{owner}/{repo}/hooks/{hook_id}/config", hooks::config),
    repo_hook(Patch, "/repos/{owner}/{repo}/hooks/{hook_id}/config", hooks::update_config),
    repo_hook(Post, "/repos/{owner}/{repo}/hooks/{hook_id}/pings", hooks::ping),
    repo_hook(Get, "/repos/{owner}/{repo}/hooks/{hook_id}/deliveries", hooks::deliveries),
    repo_hook(Get, "/repos/{owner}/{repo}/hooks/{hook_id}/deliveries/{delivery_id}", hooks::delivery),
    repo_hook(Post, "/repos/{owner}/{repo}/hooks/{hook_id}/deliveries/{delivery_id}/attempts", hooks::redeliver),
    // The actions service.
    route(Post, "/actions/runner-registration", Need::Registration, RUNNERS, app::connect),
    service(Get, "/_services/pipelines/{tenant}/_apis/runtime/runnergroups", scale_sets::groups),
    service(Get, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets", scale_sets::list),
    service(Post, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets", scale_sets::create),
    service(Get, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}", scale_sets::read),
    service(Patch, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}", scale_sets::update),
    service(Delete, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}", scale_sets::delete),
    service(
        Post,
        "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/generatejitconfig",
        scale_sets::generate_jit,
    ),
    service(Post, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/sessions", sessions::create),
    service(
        Patch,
        "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/sessions/{session_id}",
        sessions::refresh,
    ),
    service(
        Delete,
        "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/sessions/{session_id}",
        sessions::delete,
    ),
    queue(Get, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/messages", messages::get),
    queue(
        Delete,
        "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/messages/{message_id}",
        messages::delete,
    ),
    queue(Post, "/_services/pipelines/{tenant}/_apis/runtime/runnerscalesets/{id}/acquirejobs", messages::acquire),
    service(Get, "/_services/pipelines/{tenant}/_apis/distributedtask/pools/0/agents", agents::list),
    service(Get, "/_services/pipelines/{tenant}/_apis/distributedtask/pools/0/agents/{agent_id}", agents::read),
    service(Delete, "/_services/pipelines/{tenant}/_apis/distributedtask/pools/0/agents/{agent_id}", agents::delete),
    // What a program in a machine uses instead of a real runner.
    route(Get, "/_stand-in/downloads/{version}/{file}", Need::Nothing, "rest", runners::archive),
    route(Post, "/_stand-in/runners", Need::Nothing, "rest", machine::start),
    route(Get, "/_stand-in/runners/{runner_id}", Need::Nothing, "rest", machine::read),
    route(Post, "/_stand-in/runners/{runner_id}/finished", Need::Nothing, "rest", machine::finish),
];

//! Which runner gets which job, and how jobs end.

use super::Lab;
use crate::{Conclusion, JobSpec, Rerun, RunnerSpec, Scope};
use serde_json::Value;
use std::time::Duration;

fn job() -> JobSpec {
    JobSpec::new("acme/shop", &["pve"]).lasting(Duration::from_secs(30))
}

#[test]
fn a_job_starts_on_the_runner_that_waits_longest_and_has_its_labels() {
    let mut lab = Lab::new();
    lab.online("other", &["gpu"]);
    lab.pass(1);
    let first = lab.online("first", &["PVE", "large"]);
    lab.pass(1);
    lab.online("second", &["pve"]);
    let id = lab.state.push_job(&job(), lab.now);
    lab.pass(999);
    assert!(lab.state.jobs()[&id].is_queued());
    lab.pass(1);
    assert_eq!(lab.state.jobs()[&id].ran_on().unwrap().id, first);
    lab.pass(30_000);
    assert_eq!(lab.state.jobs()[&id].conclusion(), Some(Conclusion::Success));
    assert_eq!(lab.state.executions().len(), 1);
}

#[test]
fn a_job_is_stolen_by_any_runner_that_fits() {
    let mut lab = Lab::new();
    let id = lab.state.push_job(&job(), lab.now);
    lab.jit("ours", &["pve"]);
    let scope = Scope::Enterprise("acme-corp".to_owned());
    let spec = RunnerSpec { scope, name: "theirs".to_owned(), labels: vec!["pve".to_owned()], is_ephemeral: false };
    let theirs = lab.state.register_runner(&spec, lab.now);
    lab.pass(1000);
    assert_eq!(lab.state.jobs()[&id].ran_on().unwrap().id, theirs);
    lab.pass(40_000);
    let next = lab.state.push_job(&job(), lab.now);
    lab.pass(1000);
    assert_eq!(lab.state.jobs()[&next].ran_on().unwrap().id, theirs, "it is not ephemeral");
}

#[test]
fn a_job_of_a_machine_that_died_fails_late_and_its_runner_goes() {
    let mut lab = Lab::new();
    let runner = lab.online("vm-1", &["pve"]);
    let id = lab.state.push_job(&job(), lab.now);
    lab.pass(1000);
    lab.state.runner_lost(runner, lab.now);
    lab.pass(49_999);
    assert!(lab.state.runners()[&runner].is_online);
    lab.pass(1);
    assert!(!lab.state.runners()[&runner].is_online);
    let line = format!("DELETE /orgs/acme/actions/runners/{runner}");
    assert_eq!(lab.send(&line, Value::Null).status, 422, "it is still busy");
    lab.pass(549_000);
    assert!(!lab.state.jobs()[&id].is_completed());
    lab.pass(1000);
    assert_eq!(lab.state.jobs()[&id].conclusion(), Some(Conclusion::Failure));
    lab.pass(2000);
    assert!(lab.state.runners().is_empty());
}

#[test]
fn a_machine_that_died_while_idle_still_gets_a_job_until_github_notices() {
    let mut lab = Lab::new();
    let runner = lab.online("vm-1", &["pve"]);
    lab.state.runner_lost(runner, lab.now);
    lab.pass(40_000);
    let unlucky = lab.state.push_job(&job(), lab.now);
    lab.pass(10_000);
    let lucky = lab.state.push_job(&job(), lab.now);
    lab.pass(600_000);
    assert_eq!(lab.state.jobs()[&unlucky].conclusion(), Some(Conclusion::Failure));
    assert!(lab.state.jobs()[&lucky].is_queued());
}

#[test]
fn a_rerun_has_the_id_of_its_run_and_new_jobs() {
    let mut lab = Lab::new();
    let specs = [job().named("test"), job().named("build").ending(Conclusion::Failure)];
    let run = lab.state.push_run(&specs, lab.now);
    assert!(lab.state.rerun(run, Rerun::All, lab.now).is_empty(), "it is not over");
    lab.online("vm-1", &["pve"]);
    lab.online("vm-2", &["pve"]);
    lab.pass(40_000);
    let line = format!("GET /repos/acme/shop/actions/runs/{run}");
    assert_eq!(lab.send(&line, Value::Null).at("/conclusion"), "failure");
    let again = format!("POST /repos/acme/shop/actions/runs/{run}/rerun-failed-jobs");
    assert_eq!(lab.send(&again, Value::Null).status, 201);
    assert_eq!(lab.refused(&again, Value::Null), "403 This workflow is already running");
    let found = lab.send(&line, Value::Null);
    assert_eq!((found.at("/run_attempt"), found.at("/status")), (&2.into(), &"queued".into()));
    let jobs = lab.get(&format!("/repos/acme/shop/actions/runs/{run}/jobs"));
    let names: Vec<(&str, u64)> = jobs
        .at("/jobs")
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["name"].as_str().unwrap(), job["run_attempt"].as_u64().unwrap()))
        .collect();
    assert_eq!(names, [("build", 2), ("test", 1)]);
    assert_eq!(lab.get(&format!("/repos/acme/shop/actions/runs/{run}/jobs?filter=all")).at("/total_count"), 3);
    let second = lab.get(&format!("/repos/acme/shop/actions/runs/{run}/attempts/2/jobs"));
    assert_eq!(second.at("/total_count"), 1);
    assert_ne!(second.at("/jobs/0/id"), jobs.at("/jobs/1/id"));
    let first = lab.get(&format!("/repos/acme/shop/actions/runs/{run}/attempts/1"));
    assert_eq!((first.at("/run_attempt"), first.at("/conclusion")), (&1.into(), &"failure".into()));
    assert_eq!(lab.get(&format!("/repos/acme/shop/actions/runs/{run}/attempts/3")).status, 404);
}

#[test]
fn a_run_is_queued_only_while_none_of_its_jobs_has_started() {
    let mut lab = Lab::new();
    lab.state.push_run(&[job().named("a"), job().named("b")], lab.now);
    lab.state.push_run(&[job()], lab.now);
    assert_eq!(lab.get("/repos/acme/shop/actions/runs?status=queued").at("/total_count"), 2);
    lab.online("vm-1", &["pve"]);
    lab.pass(1000);
    assert_eq!(lab.get("/repos/acme/shop/actions/runs?status=queued").at("/total_count"), 1);
    assert_eq!(lab.get("/repos/acme/shop/actions/runs?status=in_progress").at("/total_count"), 1);
    assert_eq!(lab.get("/repos/acme/site/actions/runs").at("/total_count"), 0);
}

#[test]
fn a_cancelled_run_ends_at_once_where_it_waits_and_soon_where_it_runs() {
    let mut lab = Lab::new();
    let run = lab.state.push_run(&[job().named("a"), job().named("b")], lab.now);
    let runner = lab.online("vm-1", &["pve"]);
    lab.pass(1000);
    let line = format!("POST /repos/acme/shop/actions/runs/{run}/cancel");
    assert_eq!(lab.send(&line, Value::Null).status, 202);
    let ended = |lab: &Lab| lab.state.jobs().values().filter(|job| job.is_completed()).count();
    assert_eq!(ended(&lab), 1);
    lab.pass(10_000);
    assert_eq!(ended(&lab), 2);
    assert!(lab.state.jobs().values().all(|job| job.conclusion() == Some(Conclusion::Cancelled)));
    assert!(lab.state.runners()[&runner].job.is_none());
    assert_eq!(lab.refused(&line, Value::Null), "409 Cannot cancel a workflow run that is completed.");
}

#[test]
fn a_runner_that_ends_without_a_job_is_offline_and_then_gone() {
    let mut lab = Lab::new();
    let runner = lab.online("vm-1", &["pve"]);
    lab.state.runner_finished(runner, Conclusion::Success, lab.now);
    lab.state.push_job(&job(), lab.now);
    lab.pass(3000);
    assert!(lab.state.executions().is_empty());
    assert!(!lab.state.runners()[&runner].is_online);
    lab.pass(86_400_000);
    assert!(lab.state.runners().is_empty());
}

#[test]
fn a_runner_is_removed_a_day_after_it_was_there_last() {
    let mut lab = Lab::new();
    let (id, jit) = lab.jit("vm-1", &["pve"]);
    let hour = 3_600_000;
    lab.pass(10 * hour);
    lab.state.runner_online(&jit, lab.now).unwrap();
    lab.pass(10 * hour);
    lab.state.runner_finished(id, Conclusion::Success, lab.now);
    lab.pass(24 * hour - 1);
    assert_eq!(lab.state.runners().len(), 1);
    lab.pass(1);
    assert!(lab.state.runners().is_empty());
}

#[test]
fn the_same_requests_at_the_same_times_have_the_same_answers() {
    let run = || {
        let mut lab = Lab::new();
        lab.state.chaos.lost = 30;
        lab.state.add_hook(None, "https://hook.example", Some("s"));
        let mut seen = Vec::new();
        for number in 0..20 {
            lab.state.push_job(&job(), lab.now);
            lab.online(&format!("vm-{number}"), &["pve"]);
            seen.push(format!("{:?}", lab.pass(7000)));
            seen.push(format!("{:?}", lab.get("/orgs/acme/actions/runners")));
        }
        seen
    };
    assert_eq!(run(), run());
}

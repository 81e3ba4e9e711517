//! `actions/runs` and `actions/jobs` of a repository.

use crate::call::Call;
use crate::event::{job_json, run_json};
use crate::job::{Job, Rerun, Run};
use crate::response::{Answer, Refusal};
use crate::stand_in::StandIn;
use serde_json::{Value, json};

fn find_run(state: &StandIn, call: &Call<'_>) -> Result<Run, Refusal> {
    let (id, repository) = (call.id("run_id")?, call.repository()?);
    state.runs.get(&id).filter(|run| run.repository == *repository).cloned().ok_or_else(Refusal::not_found)
}

fn find_job(state: &StandIn, call: &Call<'_>) -> Result<Job, Refusal> {
    let (id, repository) = (call.id("job_id")?, call.repository()?);
    state.jobs.get(&id).filter(|job| job.spec.repository == *repository).cloned().ok_or_else(Refusal::not_found)
}

/// The runs of a repository, the newest first, all or those with a status or a conclusion.
pub(crate) fn runs(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (repository, wanted) = (call.repository()?, call.request.query.get("status"));
    let found: Vec<Value> = state
        .runs
        .values()
        .rev()
        .filter(|run| run.repository == *repository)
        .map(|run| run_json(state, run, run.attempt))
        .filter(|run| wanted.is_none_or(|wanted| run["status"] == **wanted || run["conclusion"] == **wanted))
        .collect();
    Ok(call.page(Some("workflow_runs"), &found))
}

pub(crate) fn run(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let run = find_run(state, call)?;
    Ok(run_json(state, &run, run.attempt).into())
}

pub(crate) fn attempt(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (run, attempt) = (find_run(state, call)?, call.id("attempt_number")?);
    match (1..=run.attempt).contains(&attempt) {
        true => Ok(run_json(state, &run, attempt).into()),
        false => Err(Refusal::not_found()),
    }
}

/// The jobs of a run: of all attempts, or the last of each.
pub(crate) fn jobs_of_run(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let run = find_run(state, call)?;
    let jobs: Vec<Job> = match call.request.query.get("filter").map(String::as_str) {
        Some("all") => state.jobs.values().filter(|job| job.run == run.id).cloned().collect(),
        _ => state.latest_jobs(run.id),
    };
    let found: Vec<Value> = jobs.iter().map(|job| job_json(state, job)).collect();
    Ok(call.page(Some("jobs"), &found))
}

pub(crate) fn jobs_of_attempt(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (run, attempt) = (find_run(state, call)?, call.id("attempt_number")?);
    let jobs = state.jobs.values().filter(|job| job.run == run.id && job.attempt == attempt);
    let found: Vec<Value> = jobs.map(|job| job_json(state, job)).collect();
    Ok(call.page(Some("jobs"), &found))
}

pub(crate) fn job(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let job = find_job(state, call)?;
    Ok(job_json(state, &job).into())
}

fn rerun_of(state: &mut StandIn, call: &Call<'_>, run: u64, which: Rerun) -> Result<Answer, Refusal> {
    match state.rerun(run, which, call.now).is_empty() {
        true => Err(Refusal::new(403, "This workflow is already running")),
        false => Ok(Answer::created(json!({}))),
    }
}

pub(crate) fn rerun(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let run = find_run(state, call)?.id;
    rerun_of(state, call, run, Rerun::All)
}

pub(crate) fn rerun_failed(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let run = find_run(state, call)?.id;
    rerun_of(state, call, run, Rerun::Failed)
}

pub(crate) fn rerun_job(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let job = find_job(state, call)?;
    rerun_of(state, call, job.run, Rerun::Job(job.id))
}

pub(crate) fn cancel(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let run = find_run(state, call)?.id;
    match state.cancel(run, call.now) {
        true => Ok(Answer::with_status(202, json!({}))),
        false => Err(Refusal::new(409, "Cannot cancel a workflow run that is completed.")),
    }
}

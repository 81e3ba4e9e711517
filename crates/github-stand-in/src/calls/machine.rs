//! What a program in a machine uses instead of a real runner, whose protocol is not public: start, ask for the job, end.

use crate::call::Call;
use crate::event::job_json;
use crate::job::Conclusion;
use crate::response::{Answer, Refusal};
use crate::stand_in::StandIn;
use serde_json::json;

/// Starts a runner: `{"jit", "version"}`. The JIT config is what authenticates it.
pub(crate) fn start(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let jit = call.text("jit")?.to_owned();
    let version = call.request.body["version"].as_str().unwrap_or(&state.minimum_runner).to_owned();
    match state.runner_online_with(&jit, &version, call.now) {
        Ok(id) => Ok(Answer::created(json!({"id": id}))),
        Err(refusal) => Err(Refusal::new(403, refusal.to_string())),
    }
}

/// What a runner does now: the job that it got, or none. A 404 says that it is not registered any more.
pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let id = call.id("runner_id")?;
    let runner = state.runners.get(&id).ok_or_else(Refusal::not_found)?;
    let job = runner.job.and_then(|job| state.jobs.get(&job));
    let seconds = job.and_then(|job| job.spec.duration).map(|duration| duration.as_secs_f64());
    Ok(json!({
        "id": id,
        "name": runner.name,
        "job": job.map(|job| job_json(state, job)),
        "seconds": seconds,
    })
    .into())
}

/// Ends a runner: `{"conclusion"}` of its job.
pub(crate) fn finish(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let id = call.id("runner_id")?;
    if !state.runners.contains_key(&id) {
        return Err(Refusal::not_found());
    }
    let conclusion = call.request.body["conclusion"].as_str().and_then(Conclusion::parse);
    state.runner_finished(id, conclusion.unwrap_or(Conclusion::Success), call.now);
    Ok(Answer::no_content())
}

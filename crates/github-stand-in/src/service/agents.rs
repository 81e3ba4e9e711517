//! `distributedtask/pools/0/agents` of the actions service: runners by id and by name.

use super::scale_sets::owner;
use crate::call::Call;
use crate::response::{Answer, Refusal};
use crate::runner::Runner;
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// A runner as the service shows it.
pub(crate) fn json(runner: &Runner) -> Value {
    json!({
        "id": runner.id,
        "name": runner.name,
        "runnerScaleSetId": runner.scale_set,
        "status": if runner.is_online { "online" } else { "offline" },
        "enabled": true,
        "ephemeral": runner.is_ephemeral,
        "osDescription": runner.os,
        "version": runner.version,
    })
}

fn find<'a>(state: &'a StandIn, call: &Call<'_>) -> Result<&'a Runner, Refusal> {
    let (id, scope) = (call.id("agent_id")?, owner(call)?);
    state.runners.get(&id).filter(|runner| runner.scope == *scope).ok_or_else(|| {
        let text = format!("The agent with id {id} could not be found.");
        Refusal::exception(404, "DistributedTask.WebApi.TaskAgentNotFoundException", text)
    })
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    find(state, call).map(|runner| json(runner).into())
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scope, wanted) = (owner(call)?, call.request.query.get("agentName"));
    let is_wanted =
        |runner: &&Runner| runner.scope == *scope && wanted.is_none_or(|name| name.eq_ignore_ascii_case(&runner.name));
    let shown: Vec<Value> = state.runners.values().filter(is_wanted).map(json).collect();
    Ok(json!({"count": shown.len(), "value": shown}).into())
}

pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let runner = find(state, call)?;
    let (id, name) = (runner.id, runner.name.clone());
    if runner.job.is_some() {
        let text = format!("Agent \"{name}\" is still running a job.");
        return Err(Refusal::exception(400, "DistributedTask.WebApi.TaskAgentJobStillRunningException", text));
    }
    state.runners.remove(&id);
    Ok(Answer::no_content())
}

//! `runnerscalesets` and `runnergroups` of the actions service.

use super::ScaleSet;
use crate::access::Caller;
use crate::call::Call;
use crate::names::Scope;
use crate::response::{Answer, Refusal};
use crate::runner::{RunnerGroup, jit_config};
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// Whose scale sets a request is about.
pub(crate) fn owner<'a>(call: &'a Call<'_>) -> Result<&'a Scope, Refusal> {
    match &call.caller {
        Caller::Service(scope) => Ok(scope),
        _ => Err(Refusal::new(401, "Requires authentication")),
    }
}

/// The scale set of a request.
pub(crate) fn find<'a>(state: &'a mut StandIn, call: &Call<'_>) -> Result<&'a mut ScaleSet, Refusal> {
    let (id, scope) = (call.id("id")?, owner(call)?);
    state.scale_sets.get_mut(&id).filter(|set| set.scope == *scope).ok_or_else(|| {
        let name = "Actions.Runtime.WebApi.RunnerScaleSetNotFoundException";
        Refusal::exception(404, name, format!("No runner scale set found with identifier {id}."))
    })
}

fn group_of(state: &StandIn, scope: &Scope, id: u64) -> Option<RunnerGroup> {
    match scope {
        Scope::Repository(_) => (id == 1).then(RunnerGroup::default_group),
        _ => state.groups.get(&(scope.clone(), id)).cloned(),
    }
}

pub(crate) fn groups(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let scope = owner(call)?;
    let wanted = call.request.query.get("groupName");
    let all: Vec<RunnerGroup> = match scope {
        Scope::Repository(_) => vec![RunnerGroup::default_group()],
        _ => state.groups.iter().filter(|((found, _), _)| found == scope).map(|(_, group)| group.clone()).collect(),
    };
    let size = |group: &RunnerGroup| {
        state.runners.values().filter(|runner| runner.scope == *scope && runner.group == group.id).count()
    };
    let shown: Vec<Value> = all
        .iter()
        .filter(|group| wanted.is_none_or(|name| name.eq_ignore_ascii_case(&group.name)))
        .map(|group| json!({"id": group.id, "name": group.name, "size": size(group), "isDefaultGroup": group.id == 1}))
        .collect();
    Ok(json!({"count": shown.len(), "value": shown}).into())
}

/// A scale set as the service shows it.
pub(crate) fn json(state: &StandIn, set: &ScaleSet) -> Value {
    let group = group_of(state, &set.scope, set.group);
    let labels: Vec<Value> =
        set.labels.iter().enumerate().map(|(at, name)| json!({"id": at, "name": name, "type": "System"})).collect();
    let url = format!("{}/_apis/runtime/runnerscalesets/{}", state.service_of(&set.scope), set.id);
    json!({
        "id": set.id,
        "name": set.name,
        "runnerGroupId": set.group,
        "runnerGroupName": group.map(|group| group.name),
        "labels": labels,
        "RunnerSetting": {"ephemeral": true, "isElastic": true, "disableUpdate": set.is_update_disabled},
        "createdOn": state.date(set.created),
        "runnerJitConfigUrl": format!("{url}/generatejitconfig"),
        "acquireJobsUrl": format!("{url}/acquirejobs"),
        "getAcquirableJobsUrl": format!("{url}/acquirablejobs"),
        "statistics": state.statistics(set.id).json(),
        "status": if set.session.is_some() { "online" } else { "offline" },
    })
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scope, query) = (owner(call)?, &call.request.query);
    let is_wanted = |set: &&ScaleSet| {
        let has_group = query.get("runnerGroupId").is_none_or(|group| group.parse() == Ok(set.group));
        set.scope == *scope && has_group && query.get("name").is_none_or(|name| name.eq_ignore_ascii_case(&set.name))
    };
    let shown: Vec<Value> = state.scale_sets.values().filter(is_wanted).map(|set| json(state, set)).collect();
    Ok(json!({"count": shown.len(), "value": shown}).into())
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let set = find(state, call)?.clone();
    Ok(json(state, &set).into())
}

pub(crate) fn create(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scope, body) = (owner(call)?.clone(), &call.request.body);
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    let group = body["runnerGroupId"].as_u64().unwrap_or(1);
    if group_of(state, &scope, group).is_none() {
        let text = format!("No runner group found with identifier {group}.");
        return Err(Refusal::exception(404, "Actions.Runtime.WebApi.RunnerGroupNotFoundException", text));
    }
    let is_same = |set: &ScaleSet| set.scope == scope && set.group == group && set.name.eq_ignore_ascii_case(&name);
    if name.is_empty() || state.scale_sets.values().any(is_same) {
        let text = format!("Runner scale set {name} already exists in the runner group.");
        return Err(Refusal::exception(409, "Actions.Runtime.WebApi.RunnerScaleSetExistsException", text));
    }
    let labels = body["labels"].as_array().into_iter().flatten();
    let labels: Vec<String> = labels.filter_map(|label| label["name"].as_str()).map(str::to_owned).collect();
    let id = state.number("scale set", 1);
    let set = ScaleSet {
        id,
        name: name.clone(),
        scope,
        group,
        labels: if labels.is_empty() { vec![name] } else { labels },
        max_capacity: 0,
        session: None,
        is_update_disabled: body["RunnerSetting"]["disableUpdate"] == true,
        created: call.now,
        pending: Vec::new(),
        messages: Vec::new(),
        last_message: 0,
    };
    state.scale_sets.insert(id, set.clone());
    Ok(json(state, &set).into())
}

/// Changes name, group and settings. Other labels are accepted and ignored.
pub(crate) fn update(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let set = find(state, call)?;
    let body = &call.request.body;
    if let Some(name) = body["name"].as_str() {
        name.clone_into(&mut set.name);
    }
    set.group = body["runnerGroupId"].as_u64().unwrap_or(set.group);
    if let Some(is_disabled) = body["RunnerSetting"]["disableUpdate"].as_bool() {
        set.is_update_disabled = is_disabled;
    }
    let set = set.clone();
    Ok(json(state, &set).into())
}

/// Deletes a scale set with its runners. Its jobs wait for others again.
pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let id = find(state, call)?.id;
    state.scale_sets.remove(&id);
    state.runners.retain(|_, runner| runner.scale_set != Some(id) || runner.job.is_some());
    for job in state.jobs.values_mut().filter(|job| job.is_queued()) {
        job.assigned = job.assigned.filter(|(set, _)| *set != id);
    }
    state.plan_assignment();
    Ok(Answer::no_content())
}

/// A runner of a scale set, with its configuration.
pub(crate) fn generate_jit(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let set = find(state, call)?.clone();
    let name = call.request.body["name"].as_str().unwrap_or_default().to_owned();
    if state.is_taken(&set.scope, &name) {
        let text = format!("A runner with the name {name} already exists.");
        return Err(Refusal::exception(409, "DistributedTask.WebApi.TaskAgentExistsException", text));
    }
    let id = state.add_jit_runner(&set.scope, set.group, name, set.labels.clone(), Some(set.id));
    let runner = state.runners.get(&id).cloned().ok_or_else(Refusal::not_found)?;
    let reference = super::agents::json(&runner);
    Ok(json!({"runner": reference, "encodedJITConfig": runner.jit}).into())
}

impl StandIn {
    /// Whether a runner of a scope has this name.
    pub(crate) fn is_taken(&self, scope: &Scope, name: &str) -> bool {
        self.runners.values().any(|runner| runner.scope == *scope && runner.name.eq_ignore_ascii_case(name))
    }

    /// Registers a runner that has not been started yet; returns its id.
    pub(crate) fn add_jit_runner(
        &mut self,
        scope: &Scope,
        group: u64,
        name: String,
        labels: Vec<String>,
        scale_set: Option<u64>,
    ) -> u64 {
        let (id, secret, now) = (self.number("runner", 1), self.random.uuid(), self.now);
        let mut runner = crate::Runner {
            id,
            name,
            scope: scope.clone(),
            group,
            labels,
            os: "unknown".to_owned(),
            is_online: false,
            job: None,
            is_ephemeral: true,
            scale_set,
            created: now,
            version: None,
            is_lost: false,
            since: now,
            jit: None,
            is_used: false,
        };
        runner.jit = Some(jit_config(&runner, &self.address, &secret));
        self.runners.insert(id, runner);
        self.remove_if_unused(id, now);
        id
    }
}

//! `actions/runner-groups` of an enterprise or an organisation.

use crate::call::Call;
use crate::names::{RepositoryName, Scope};
use crate::response::{Answer, Refusal};
use crate::runner::{Runner, RunnerGroup};
use crate::stand_in::StandIn;
use serde_json::Value;
use std::collections::BTreeSet;

fn key(call: &Call<'_>) -> Result<(Scope, u64), Refusal> {
    Ok((call.scope()?.clone(), call.id("runner_group_id")?))
}

fn path(state: &StandIn, scope: &Scope) -> String {
    format!("{}/{}", state.api(), scope.api_path())
}

/// All groups, or those that a repository can use.
pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let scope = call.scope()?;
    let visible = call.request.query.get("visible_to_repository");
    let repository = match (visible, scope) {
        (Some(name), Scope::Organization(owner)) => Some(RepositoryName { owner: owner.clone(), name: name.clone() }),
        _ => None,
    };
    let is_public = |name: &RepositoryName| state.repositories.get(name).is_some_and(|found| found.is_public);
    let is_visible = |group: &RunnerGroup| repository.as_ref().is_none_or(|name| group.serves(name, is_public(name)));
    let found: Vec<Value> = state
        .groups
        .iter()
        .filter(|((owner, _), group)| owner == scope && is_visible(group))
        .map(|(_, group)| group.json(&path(state, scope)))
        .collect();
    Ok(call.page(Some("runner_groups"), &found))
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let key = key(call)?;
    let group = state.groups.get(&key).ok_or_else(Refusal::not_found)?;
    Ok(group.json(&path(state, &key.0)).into())
}

pub(crate) fn create(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scope, name) = (call.scope()?.clone(), call.text("name")?.to_owned());
    let is_taken = state.groups.iter().any(|((owner, _), group)| *owner == scope && group.name == name);
    if is_taken {
        return Err(Refusal::new(409, format!("A runner group with the name {name} already exists.")));
    }
    let group = RunnerGroup {
        id: 0,
        name,
        repositories: (call.request.body["visibility"] == "selected").then(BTreeSet::new),
        allows_public: call.request.body["allows_public_repositories"] == true,
    };
    let id = state.add_group(&scope, group);
    let group = state.groups.get(&(scope.clone(), id)).ok_or_else(Refusal::not_found)?;
    Ok(Answer::created(group.json(&path(state, &scope))))
}

/// Deletes a group; its runners move to the default one.
pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let key = key(call)?;
    if key.1 == 1 {
        return Err(Refusal::new(422, "Default runner group cannot be deleted."));
    }
    state.groups.remove(&key).ok_or_else(Refusal::not_found)?;
    for runner in state.runners.values_mut().filter(|runner| (runner.scope.clone(), runner.group) == key) {
        runner.group = 1;
    }
    Ok(Answer::no_content())
}

pub(crate) fn runners(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let key = key(call)?;
    if !state.groups.contains_key(&key) {
        return Err(Refusal::not_found());
    }
    let is_member = |runner: &&Runner| runner.scope == key.0 && runner.group == key.1;
    let found: Vec<Value> = state.runners.values().filter(is_member).map(Runner::json).collect();
    Ok(call.page(Some("runners"), &found))
}

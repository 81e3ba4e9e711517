//! `actions/runners` of an enterprise, an organisation or a repository.

use crate::call::Call;
use crate::hash::{hex, sha256};
use crate::names::Scope;
use crate::response::{Answer, Refusal};
use crate::runner::Runner;
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// The longest name and the most labels of a runner.
const LONGEST_NAME: usize = 64;
const MOST_LABELS: usize = 100;

fn find<'a>(state: &'a mut StandIn, call: &Call<'_>) -> Result<&'a mut Runner, Refusal> {
    let (id, scope) = (call.id("runner_id")?, call.scope()?);
    state.runners.get_mut(&id).filter(|runner| runner.scope == *scope).ok_or_else(Refusal::not_found)
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scope, name) = (call.scope()?, call.request.query.get("name"));
    let lag = state.timing.list_lag;
    let is_wanted = |runner: &&Runner| {
        let is_shown = lag.is_zero() || call.now >= runner.created + lag;
        runner.scope == *scope && is_shown && name.is_none_or(|name| name.eq_ignore_ascii_case(&runner.name))
    };
    let found: Vec<Value> = state.runners.values().filter(is_wanted).map(Runner::json).collect();
    Ok(call.page(Some("runners"), &found))
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    find(state, call).map(|runner| runner.json().into())
}

pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let runner = find(state, call)?;
    if runner.job.is_some() {
        return Err(Refusal::new(422, format!("Bad request - Runner \"{}\" is still running a job", runner.name)));
    }
    let id = runner.id;
    state.runners.remove(&id);
    Ok(Answer::no_content())
}

pub(crate) fn generate_jit(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let scope = call.scope()?.clone();
    let (name, labels) = (call.text("name")?.to_owned(), call.texts("labels")?);
    let Some(group) = call.request.body["runner_group_id"].as_u64() else {
        return Err(Refusal::invalid("\"runner_group_id\" wasn't supplied."));
    };
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(Refusal::invalid(format!("Only 1 to {LONGEST_NAME} characters are allowed in \"name\".")));
    }
    if labels.is_empty() || labels.len() > MOST_LABELS {
        return Err(Refusal::invalid(format!("Only 1 to {MOST_LABELS} items are allowed in \"labels\".")));
    }
    let has_group = match &scope {
        Scope::Repository(_) => group == 1,
        _ => state.groups.contains_key(&(scope.clone(), group)),
    };
    if !has_group {
        return Err(Refusal::not_found());
    }
    if state.is_taken(&scope, &name) {
        return Err(Refusal::new(409, format!("Already exists - A runner with the name {name} already exists.")));
    }
    let id = state.add_jit_runner(&scope, group, name, labels, None);
    let runner = state.runners.get(&id).ok_or_else(Refusal::not_found)?;
    Ok(Answer::created(json!({"runner": runner.json(), "encoded_jit_config": runner.jit})))
}

fn archives(version: &str) -> [(&'static str, String); 2] {
    ["x64", "arm64"].map(|architecture| (architecture, format!("actions-runner-linux-{architecture}-{version}.tar.gz")))
}

/// What stands for the content of an archive.
fn content(file: &str) -> Value {
    json!({"archive": file})
}

pub(crate) fn downloads(state: &mut StandIn, _: &Call<'_>) -> Result<Answer, Refusal> {
    let version = &state.minimum_runner;
    let item = |(architecture, file): (&str, String)| {
        json!({
            "os": "linux",
            "architecture": architecture,
            "download_url": format!("{}/_stand-in/downloads/v{version}/{file}", state.address),
            "filename": file,
            "sha256_checksum": hex(&sha256(content(&file).to_string().as_bytes())),
        })
    };
    Ok(Value::from(archives(version).map(item).to_vec()).into())
}

/// An archive that is offered. Everybody may have it.
pub(crate) fn archive(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let found = archives(&state.minimum_runner).into_iter().find(|(_, file)| file == call.path("file"));
    let is_offered = call.path("version").strip_prefix('v') == Some(state.minimum_runner.as_str());
    let (_, file) = found.filter(|_| is_offered).ok_or_else(Refusal::not_found)?;
    Ok(content(&file).into())
}

fn labels_json(runner: &Runner) -> Answer {
    let labels = runner.json()["labels"].take();
    json!({"total_count": runner.labels.len(), "labels": labels}).into()
}

pub(crate) fn labels(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    find(state, call).map(|runner| labels_json(runner))
}

fn is_given(label: &str) -> bool {
    ["self-hosted", "linux", "x64", "arm64", "windows", "macos"].contains(&label.to_lowercase().as_str())
}

/// Keeps the labels that cannot be changed and sets all others.
pub(crate) fn set_labels(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let wanted = if call.request.body.is_null() { Vec::new() } else { call.texts("labels")? };
    let runner = find(state, call)?;
    runner.labels.retain(|label| is_given(label));
    runner.labels.extend(wanted);
    let answer = labels_json(runner);
    state.plan_assignment();
    Ok(answer)
}

pub(crate) fn add_labels(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let wanted = call.texts("labels")?;
    let runner = find(state, call)?;
    for label in wanted {
        if !runner.labels.iter().any(|found| found.eq_ignore_ascii_case(&label)) {
            runner.labels.push(label);
        }
    }
    let answer = labels_json(runner);
    state.plan_assignment();
    Ok(answer)
}

pub(crate) fn remove_label(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let name = call.path("name").to_owned();
    let runner = find(state, call)?;
    let Some(at) = runner.labels.iter().position(|label| label.eq_ignore_ascii_case(&name)) else {
        return Err(Refusal::not_found());
    };
    if is_given(&name) {
        return Err(Refusal::new(422, "Validation Failed"));
    }
    runner.labels.remove(at);
    Ok(labels_json(runner))
}

//! Hooks of an organisation, a repository and the App, and their deliveries.

use crate::call::Call;
use crate::hook::{DeliveryRecord, Hook};
use crate::response::{Answer, Refusal};
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// The hook of a request; that of the App has no id in its path.
fn find<'a>(state: &'a mut StandIn, call: &Call<'_>) -> Result<&'a mut Hook, Refusal> {
    let wanted = if call.scope.is_some() { Some(call.id("hook_id")?) } else { None };
    let is_wanted = |hook: &&mut Hook| hook.scope == call.scope && wanted.is_none_or(|id| hook.id == id);
    state.hooks.values_mut().find(is_wanted).ok_or_else(Refusal::not_found)
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let hooks = state.hooks.values().filter(|hook| hook.scope == call.scope);
    let found: Vec<Value> = hooks.map(|hook| hook.json(state)).collect();
    Ok(call.page(None, &found))
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let hook = find(state, call)?.clone();
    Ok(hook.json(state).into())
}

/// Sets what the body has of the configuration.
fn configure(hook: &mut Hook, config: &Value) {
    if let Some(url) = config["url"].as_str() {
        url.clone_into(&mut hook.url);
    }
    if let Some(secret) = config["secret"].as_str() {
        hook.secret = Some(secret.to_owned());
    }
}

pub(crate) fn create(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let body = &call.request.body;
    let Some(url) = body["config"]["url"].as_str() else {
        return Err(Refusal::invalid("\"config\" wasn't supplied."));
    };
    if state.hooks.values().any(|hook| hook.scope == call.scope && hook.url == url) {
        return Err(Refusal::new(422, "Validation Failed: Hook already exists on this organization"));
    }
    let id = state.add_hook(call.scope.clone(), url, body["config"]["secret"].as_str());
    let Some(hook) = state.hooks.get_mut(&id) else { return Err(Refusal::not_found()) };
    hook.events = match body["events"].is_array() {
        true => call.texts("events")?,
        false => vec!["push".to_owned()],
    };
    hook.is_active = body["active"] != false;
    let hook = hook.clone();
    state.ping(&hook);
    Ok(Answer::created(hook.json(state)))
}

pub(crate) fn update(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let body = &call.request.body;
    let events = if body["events"].is_array() { Some(call.texts("events")?) } else { None };
    let hook = find(state, call)?;
    configure(hook, &body["config"]);
    hook.is_active = body["active"].as_bool().unwrap_or(hook.is_active);
    hook.events = events.unwrap_or_else(|| hook.events.clone());
    let hook = hook.clone();
    Ok(hook.json(state).into())
}

pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let id = find(state, call)?.id;
    state.hooks.remove(&id);
    Ok(Answer::no_content())
}

pub(crate) fn ping(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let hook = find(state, call)?.clone();
    state.ping(&hook);
    Ok(Answer::no_content())
}

pub(crate) fn config(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(find(state, call)?.config().into())
}

pub(crate) fn update_config(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let hook = find(state, call)?;
    configure(hook, &call.request.body);
    Ok(hook.config().into())
}

/// The deliveries of a hook, the newest first, by a cursor instead of a page.
pub(crate) fn deliveries(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (hook, query) = (find(state, call)?.id, &call.request.query);
    let below: u64 =
        query.get("cursor").and_then(|cursor| cursor.strip_prefix("v1_")?.parse().ok()).unwrap_or(u64::MAX);
    let is_wanted = |record: &&DeliveryRecord| {
        let is_failed = !(200..300).contains(&record.outcome().0);
        // One that is still on its way is not shown.
        record.hook == hook
            && record.id < below
            && record.is_done
            && record.at <= call.now
            && match query.get("status").map(String::as_str) {
                Some("failure") => is_failed,
                Some("success") => !is_failed,
                _ => true,
            }
    };
    let mut found: Vec<&DeliveryRecord> = state.deliveries.values().rev().filter(is_wanted).collect();
    let has_more = found.len() > call.per_page();
    found.truncate(call.per_page());
    let shown: Vec<Value> = found.iter().map(|record| record.json(state)).collect();
    let mut answer = Answer::from(Value::Array(shown));
    if let Some(last) = found.last().filter(|_| has_more) {
        let next = call.link(&[("cursor", format!("v1_{}", last.id))]);
        answer.headers.push(("link", format!("<{next}>; rel=\"next\"")));
    }
    Ok(answer)
}

fn find_delivery(state: &mut StandIn, call: &Call<'_>) -> Result<DeliveryRecord, Refusal> {
    let (hook, id) = (find(state, call)?.id, call.id("delivery_id")?);
    state.deliveries.get(&id).filter(|record| record.hook == hook).cloned().ok_or_else(Refusal::not_found)
}

pub(crate) fn delivery(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let record = find_delivery(state, call)?;
    let Some(hook) = state.hooks.get(&record.hook) else { return Err(Refusal::not_found()) };
    let headers: serde_json::Map<String, Value> =
        hook.deliver(&record).headers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut found = record.json(state);
    found["url"] = hook.url.clone().into();
    found["request"] = json!({"headers": headers, "payload": record.payload});
    found["response"] = json!({"headers": {}, "payload": ""});
    Ok(found.into())
}

pub(crate) fn redeliver(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let record = find_delivery(state, call)?;
    match state.redeliver(record.id) {
        true => Ok(Answer::with_status(202, json!({}))),
        false => Err(Refusal::not_found()),
    }
}

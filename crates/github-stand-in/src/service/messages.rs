//! The message queue of a scale set: polls, deletions, and the acquisition of jobs.

use super::{Message, Poll};
use crate::access::Caller;
use crate::call::Call;
use crate::response::{Answer, Refusal, Response};
use crate::stand_in::StandIn;
use serde_json::{Value, json};
use std::time::Duration;

/// The session of a request. A listener whose session was ended or taken over is told to open a new one.
fn session(state: &mut StandIn, call: &Call<'_>) -> Result<(u64, String), Refusal> {
    let Caller::Queue { scale_set, session } = &call.caller else {
        return Err(Refusal::new(401, "Requires authentication"));
    };
    let now = call.now;
    let set = state.scale_sets.get_mut(scale_set).filter(|_| call.path("id").parse() == Ok(*scale_set));
    match set.and_then(|set| set.session.as_mut()).filter(|found| found.id == *session) {
        Some(found) => {
            found.seen = now;
            Ok((*scale_set, session.clone()))
        }
        None => Err(gone()),
    }
}

fn gone() -> Refusal {
    let name = "Actions.Runtime.WebApi.RunnerScaleSetSessionExpiredException";
    Refusal::exception(404, name, "The session for the runner scale set could not be found.")
}

/// Waits for a message.
pub(crate) fn get(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scale_set, session) = session(state, call)?;
    if let Some(set) = state.scale_sets.get_mut(&scale_set) {
        set.max_capacity = call.request.max_capacity.unwrap_or(set.max_capacity);
    }
    state.assign_up_to_capacity(scale_set);
    let last = call.request.query.get("lastMessageId").and_then(|value| value.parse().ok()).unwrap_or(0);
    let poll = Poll { scale_set, session, last, until: call.now + state.timing.poll };
    Ok(Answer { poll: Some(poll), ..Answer::no_content() })
}

/// Deletes a message, which otherwise comes again.
pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scale_set, _) = session(state, call)?;
    let id = call.id("message_id")?;
    if let Some(set) = state.scale_sets.get_mut(&scale_set) {
        set.messages.retain(|message| message.id != id);
    }
    Ok(Answer::no_content())
}

/// Takes jobs that were offered; returns those that nobody else took.
pub(crate) fn acquire(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (scale_set, _) = session(state, call)?;
    let wanted: Vec<u64> = call.request.body.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let acquired: Vec<u64> = wanted.into_iter().filter(|&job| state.assign_to(scale_set, job)).collect();
    Ok(json!({"count": acquired.len(), "value": acquired}).into())
}

impl StandIn {
    /// The answer to a poll, once there is one: a message, nothing at the end of its time, or that its session is over.
    pub fn poll(&mut self, poll: &Poll, now: Duration) -> Option<Response> {
        self.advance(now);
        let statistics = self.statistics(poll.scale_set);
        let set = self.scale_sets.get_mut(&poll.scale_set);
        let Some(set) = set.filter(|set| set.session.as_ref().is_some_and(|found| found.id == poll.session)) else {
            return Some(gone().response("rest"));
        };
        if let Some(session) = &mut set.session {
            session.seen = now;
        }
        if !set.messages.iter().any(|message| message.id > poll.last) && !set.pending.is_empty() {
            let items = std::mem::take(&mut set.pending);
            set.last_message += 1;
            set.messages.push(Message { id: set.last_message, items, statistics });
        }
        if let Some(message) = set.messages.iter().find(|message| message.id > poll.last) {
            let body = json!({
                "messageId": message.id,
                "messageType": "RunnerScaleSetJobMessages",
                "body": Value::Array(message.items.clone()).to_string(),
                "statistics": message.statistics.json(),
            });
            return Some(Response { has_mark: true, ..Response::new(200, Some(body)) });
        }
        (now >= poll.until).then(|| Response::new(202, None))
    }
}

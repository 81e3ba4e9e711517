//! Sessions of listeners: one at a time for each scale set.

use super::{ScaleSet, Session};
use crate::access::Caller;
use crate::call::Call;
use crate::job::Job;
use crate::jwt;
use crate::response::{Answer, Refusal};
use crate::setup::Assignment;
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// Opens a session, unless another listener was there a short while ago.
pub(crate) fn create(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let owner = call.request.body["ownerName"].as_str().unwrap_or_default().to_owned();
    let id = state.random.uuid();
    let (now, alive) = (call.now, state.timing.session);
    let set = super::scale_sets::find(state, call)?;
    if set.session.as_ref().is_some_and(|session| now < session.seen + alive) {
        let name = "Actions.Runtime.WebApi.RunnerScaleSetSessionConflictException";
        let text = format!("The actions runner scaleset {} already has an active session.", set.name);
        return Err(Refusal::exception(409, name, text));
    }
    set.session = Some(Session { id, owner, seen: now });
    // Messages belong to their session. What can still be acquired is offered again, and the rest is in the statistics.
    set.messages.clear();
    set.pending.clear();
    let set = set.id;
    if state.assignment == Assignment::Acquire {
        let open: Vec<u64> = state.jobs.values().filter(|job| is_open(state, set, job)).map(|job| job.id).collect();
        for job in open {
            state.add_item(set, job, "JobAvailable");
        }
    }
    Ok(json(state, set).into())
}

fn is_open(state: &StandIn, set: u64, job: &Job) -> bool {
    let fits = |set: &ScaleSet| state.fits(set, job);
    job.is_queued() && job.assigned.is_none() && state.scale_sets.get(&set).is_some_and(fits)
}

/// Gives the listener of a session a new token.
pub(crate) fn refresh(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let now = call.now;
    let set = of_session(state, call)?;
    if let Some(session) = &mut set.session {
        session.seen = now;
    }
    let set = set.id;
    Ok(json(state, set).into())
}

/// Ends a session.
pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    of_session(state, call)?.session = None;
    Ok(Answer::no_content())
}

fn of_session<'a>(state: &'a mut StandIn, call: &Call<'_>) -> Result<&'a mut ScaleSet, Refusal> {
    let set = super::scale_sets::find(state, call)?;
    match set.session.as_ref().is_some_and(|session| session.id == call.path("session_id")) {
        true => Ok(set),
        false => {
            let name = "Actions.Runtime.WebApi.RunnerScaleSetSessionExpiredException";
            Err(Refusal::exception(404, name, "The session for the runner scale set could not be found."))
        }
    }
}

fn json(state: &mut StandIn, id: u64) -> Value {
    let Some(session) = state.scale_sets.get(&id).and_then(|set| set.session.clone()) else { return Value::Null };
    let expires = state.clock(state.now + state.timing.queue_token);
    let token = jwt::sign(&json!({"exp": expires, "jti": state.random.uuid(), "sid": session.id}), &state.secret);
    let caller = Caller::Queue { scale_set: id, session: session.id.clone() };
    let token = state.hand_out(token, caller, state.timing.queue_token);
    let queue = format!("{}/_apis/runtime/runnerscalesets/{id}/messages", state.service_address(id));
    let statistics = state.statistics(id).json();
    json!({
        "sessionId": session.id,
        "ownerName": session.owner,
        "runnerScaleSet": state.scale_sets.get(&id).map(|set| super::scale_sets::json(state, set)),
        "messageQueueUrl": format!("{queue}?sessionId={}", session.id),
        "messageQueueAccessToken": token,
        "statistics": statistics,
    })
}

impl StandIn {
    /// The sessions of all scale sets are lost, as by a restart of the service: their listeners have to open new ones.
    pub fn lose_sessions(&mut self) {
        for set in self.scale_sets.values_mut() {
            set.session = None;
        }
    }

    /// The tokens of all message queues and of the actions service end before their time.
    pub fn expire_service_tokens(&mut self) {
        let is_of_service = |caller: &Caller| matches!(caller, Caller::Queue { .. } | Caller::Service(_));
        let now = self.now;
        for token in self.tokens.values_mut().filter(|token| is_of_service(&token.caller)) {
            token.expires = now;
        }
    }
}

//! Faults on demand: what goes wrong with the next requests of a kind.

use crate::request::{Method, Request};
use crate::response::Response;
use crate::service::Poll;
use std::time::Duration;

/// A fault and the requests that it happens to.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The method, or any.
    pub method: Option<Method>,
    /// What has to be somewhere in the path, such as `generate-jitconfig`.
    pub contains: String,
    /// How many matching requests pass before.
    pub skip: u32,
    /// To how many requests it happens.
    pub times: u32,
    /// What goes wrong.
    pub effect: FaultEffect,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultEffect {
    /// It is carried out, and the answer is lost.
    LoseReply,
    /// It is lost before it is carried out.
    Drop,
    /// It is carried out at once, and answered so much later.
    Delay(Duration),
    /// It is carried out twice, as by a proxy that repeats it; the second answer is sent.
    Repeat,
    /// It is not carried out and answered with this code and text, such as 502 and `Server Error`.
    Fail(u16, String),
    /// It is carried out and answered with this code all the same.
    FailAfter(u16, String),
    /// It is refused by the secondary rate limit, with so many seconds in `Retry-After`.
    SecondaryLimit(u64),
}

impl Fault {
    /// A fault that happens once.
    pub fn once(method: Method, contains: &str, effect: FaultEffect) -> Fault {
        Fault { method: Some(method), contains: contains.to_owned(), skip: 0, times: 1, effect }
    }

    /// Happens so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Fault {
        self.times = times;
        self
    }

    /// Lets so many matching requests pass first.
    #[must_use]
    pub fn after(mut self, skip: u32) -> Fault {
        self.skip = skip;
        self
    }

    fn matches(&self, request: &Request) -> bool {
        self.method.is_none_or(|method| method == request.method) && request.path.contains(&self.contains)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It is answered.
    Answer(Response),
    /// It is answered so much later.
    Late(Response, Duration),
    /// It waits for a message: ask [`crate::StandIn::poll`] whenever something changed, and at the end of its time.
    Wait(Poll),
    /// The connection is closed without an answer.
    Lost,
}

impl Reply {
    /// The answer, if there is one already.
    pub fn answer(self) -> Option<Response> {
        match self {
            Reply::Answer(response) | Reply::Late(response, _) => Some(response),
            Reply::Wait(_) | Reply::Lost => None,
        }
    }
}

/// All faults that are still to happen, and how many happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Faults {
    pub(crate) pending: Vec<Fault>,
    pub(crate) fired: u64,
}

impl Faults {
    /// What happens to this request.
    pub(crate) fn take(&mut self, request: &Request) -> Option<FaultEffect> {
        let at = self.pending.iter().position(|fault| fault.matches(request))?;
        let fault = &mut self.pending[at];
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        let effect = fault.effect.clone();
        fault.times = fault.times.saturating_sub(1);
        if fault.times == 0 {
            self.pending.remove(at);
        }
        self.fired += 1;
        Some(effect)
    }
}

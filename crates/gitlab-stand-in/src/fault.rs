//! Faults on demand: what goes wrong with the next requests of a kind.

use crate::answer::Response;
use crate::request::{Method, Request};
use std::time::Duration;

/// A fault and the requests that it happens to.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The method.
    pub method: Method,
    /// What has to be somewhere in the path, such as `/runners`.
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
    /// It is not carried out and answered with this code and text, such as 502 and `Bad Gateway`.
    Fail(u16, String),
    /// It is refused by a limit, with so many seconds in `Retry-After`.
    RetryLater(u64),
    /// Before it is carried out, this runner asks for a job.
    RunnerAsks(u64),
}

impl Fault {
    /// A fault that happens once.
    pub fn once(method: Method, contains: &str, effect: FaultEffect) -> Fault {
        Fault { method, contains: contains.to_owned(), skip: 0, times: 1, effect }
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
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It is answered.
    Answer(Response),
    /// It is answered so much later.
    Late(Response, Duration),
    /// The connection is closed without an answer.
    Lost,
}

/// All faults that are still to happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Faults(pub(crate) Vec<Fault>);

impl Faults {
    /// What happens to this request.
    pub(crate) fn take(&mut self, request: &Request) -> Option<FaultEffect> {
        let path = request.shown();
        let is_meant = |fault: &Fault| fault.method == request.method && path.contains(&fault.contains);
        let at = self.0.iter().position(is_meant)?;
        let fault = self.0.get_mut(at)?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        let effect = fault.effect.clone();
        fault.times = fault.times.saturating_sub(1);
        if fault.times == 0 {
            self.0.remove(at);
        }
        Some(effect)
    }
}

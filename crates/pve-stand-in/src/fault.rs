//! Faults on demand: what goes wrong with the next requests of a kind.

use crate::request::{Method, Request};
use crate::response::Response;
use std::time::Duration;

/// A fault and the requests that it happens to.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The method, or any.
    pub method: Option<Method>,
    /// The beginning of the path below `/api2/json`.
    pub path: String,
    /// What has to be somewhere in the path, or nothing.
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
    /// The client sees a closed connection, and it is carried out so much later all the same.
    CarryOutLater(Duration),
    /// It is carried out twice, as by a proxy that repeats it; the second answer is sent.
    Repeat,
    /// It is not carried out and answered with this code and text.
    Fail(u16, String),
    /// The task that it starts fails at its end with this text.
    TaskFails(String),
    /// The task that it starts never ends.
    TaskNeverEnds,
}

impl Fault {
    /// A fault that happens once.
    pub fn once(method: Method, path: &str, effect: FaultEffect) -> Fault {
        Fault { method: Some(method), path: path.to_owned(), contains: String::new(), skip: 0, times: 1, effect }
    }

    /// Only for paths that contain this, such as `/clone`.
    #[must_use]
    pub fn containing(mut self, part: &str) -> Fault {
        part.clone_into(&mut self.contains);
        self
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
        self.method.is_none_or(|method| method == request.method)
            && request.path.starts_with(&self.path)
            && request.path.contains(&self.contains)
    }

    fn is_about_tasks(&self) -> bool {
        matches!(self.effect, FaultEffect::TaskFails(_) | FaultEffect::TaskNeverEnds)
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

impl Reply {
    /// The answer, if there is one.
    pub fn answer(self) -> Option<Response> {
        match self {
            Reply::Answer(response) | Reply::Late(response, _) => Some(response),
            Reply::Lost => None,
        }
    }
}

/// All faults that are still to happen, and how many happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Faults {
    pending: Vec<Fault>,
    pub(crate) fired: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.pending.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    pub(crate) fn pending(&self) -> &[Fault] {
        &self.pending
    }

    /// What happens to this request.
    pub(crate) fn take(&mut self, request: &Request) -> Option<FaultEffect> {
        self.take_where(request, |fault| !fault.is_about_tasks())
    }

    /// What happens to the task that this request starts: a failure with a text, or no end.
    pub(crate) fn take_planned(&mut self, request: &Request) -> Option<Option<String>> {
        match self.take_where(request, Fault::is_about_tasks)? {
            FaultEffect::TaskFails(text) => Some(Some(text)),
            _ => Some(None),
        }
    }

    fn take_where(&mut self, request: &Request, wanted: impl Fn(&Fault) -> bool) -> Option<FaultEffect> {
        let at = self.pending.iter().position(|fault| wanted(fault) && fault.matches(request))?;
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

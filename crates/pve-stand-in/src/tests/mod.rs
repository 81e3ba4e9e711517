//! Tests of the stand-in, as tables of requests and answers.

mod access;
mod clone;
mod configuration;
mod faults;
mod http;
mod lifecycle;
mod storage;

use crate::{Method, Request, Response, Setup, StandIn, Timing};
use serde_json::Value;
use std::time::Duration;

/// A cluster with real times, and who asks it when.
pub(super) struct Lab {
    pub(super) state: StandIn,
    pub(super) now: Duration,
    pub(super) token: String,
}

impl Lab {
    pub(super) fn new() -> Lab {
        Lab::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Setup)) -> Lab {
        let mut setup = Setup::cluster(Timing::real());
        change(&mut setup);
        Lab { state: StandIn::new(&setup), now: Duration::ZERO, token: Setup::ROOT_TOKEN.to_owned() }
    }

    /// As the token with the least privileges.
    pub(super) fn fleet() -> Lab {
        Lab { token: Setup::FLEET_TOKEN.to_owned(), ..Lab::new() }
    }

    /// Sends `METHOD PATH name=value ...`.
    pub(super) fn send(&mut self, line: &str) -> Option<Response> {
        let request = request(line).token(&self.token);
        self.state.handle(&request, self.now).answer()
    }

    /// The code and the reason of the answer, with wrong parameters.
    pub(super) fn refused(&mut self, line: &str) -> String {
        let Some(response) = self.send(line) else { return "lost".to_owned() };
        let errors = response.body.as_ref().and_then(|body| body.get("errors")).map(|errors| format!(" {errors}"));
        format!("{} {}{}", response.status, response.reason, errors.unwrap_or_default())
    }

    /// The data of an answer that has to be a success.
    pub(super) fn ask(&mut self, line: &str) -> Value {
        let response = self.send(line).unwrap_or_else(|| panic!("{line}: no answer"));
        assert_eq!(response.status, 200, "{line}: {}", response.reason);
        response.body.unwrap()["data"].take()
    }

    /// Sends a request that starts a task, waits for its end and returns the exit status.
    pub(super) fn run(&mut self, line: &str) -> String {
        let upid = self.ask(line);
        self.exit(upid.as_str().unwrap())
    }

    pub(super) fn exit(&mut self, upid: &str) -> String {
        for _ in 0..10_000 {
            if let Some(exit) = &self.state.tasks()[upid].exit {
                return exit.clone();
            }
            self.pass(100);
        }
        "never".to_owned()
    }

    /// Lets so many milliseconds pass.
    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.state.advance(self.now);
    }

    /// A VM that was cloned from the template.
    pub(super) fn machine(&mut self, vmid: u32) {
        let line =
            format!("POST /nodes/pve1/qemu/9000/clone newid={vmid} name=m{vmid} pool=virtpilot description=owner");
        assert_eq!(self.run(&line), "OK");
    }
}

/// Reads `METHOD PATH name=value ...`; `_` in a value is a space if it is doubled.
pub(super) fn request(line: &str) -> Request {
    let mut parts = line.split(' ');
    let method = match parts.next().unwrap() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        other => panic!("{other}"),
    };
    let mut request = Request::new(method, parts.next().unwrap());
    for part in parts {
        let (name, value) = part.split_once('=').unwrap();
        request = request.with(name, value.replace("__", " "));
    }
    request
}

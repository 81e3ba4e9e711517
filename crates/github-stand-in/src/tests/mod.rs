//! Tests of the stand-in: requests and answers, and what people and machines do behind them.

mod access;
mod faults;
mod http;
mod jobs;
mod limits;
mod runners;
mod scale_sets;
mod webhooks;

use crate::{Delivery, Method, Reply, Request, Response, Setup, StandIn, Timing};
use serde_json::{Value, json};
use std::time::Duration;

/// An organisation with real times, and who asks when.
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
        let mut setup = Setup::organization(Timing::real());
        change(&mut setup);
        Lab { state: StandIn::new(&setup), now: Duration::ZERO, token: Setup::TOKEN.to_owned() }
    }

    /// Carries out a request with the token.
    pub(super) fn handle(&mut self, request: Request) -> Reply {
        let request = match request.authorization {
            Some(_) => request,
            None => request.token(&self.token),
        };
        self.state.handle(&request, self.now)
    }

    /// Sends `METHOD TARGET` with a body.
    pub(super) fn send(&mut self, line: &str, body: Value) -> Response {
        self.handle(request(line).json(body)).answer().unwrap_or_else(|| panic!("{line}: no answer"))
    }

    pub(super) fn get(&mut self, target: &str) -> Response {
        self.send(&format!("GET {target}"), Value::Null)
    }

    /// The code and the message of the answer.
    pub(super) fn refused(&mut self, line: &str, body: Value) -> String {
        let response = self.send(line, body);
        format!("{} {}", response.status, response.at("/message").as_str().unwrap_or_default())
    }

    /// Lets so many milliseconds pass; returns the webhooks that were sent.
    pub(super) fn pass(&mut self, milliseconds: u64) -> Vec<Delivery> {
        self.now += Duration::from_millis(milliseconds);
        self.state.tick(self.now)
    }

    /// A runner of the organisation with a JIT config; returns its id and the config.
    pub(super) fn jit(&mut self, name: &str, labels: &[&str]) -> (u64, String) {
        let body = json!({"name": name, "runner_group_id": 1, "labels": labels});
        let response = self.send("POST /orgs/acme/actions/runners/generate-jitconfig", body);
        assert_eq!(response.status, 201, "{response:?}");
        let id = response.at("/runner/id").as_u64().unwrap();
        (id, response.at("/encoded_jit_config").as_str().unwrap().to_owned())
    }

    /// A runner that is online.
    pub(super) fn online(&mut self, name: &str, labels: &[&str]) -> u64 {
        let (id, jit) = self.jit(name, labels);
        assert_eq!(self.state.runner_online(&jit, self.now), Ok(id));
        id
    }
}

/// Reads `METHOD TARGET`.
pub(super) fn request(line: &str) -> Request {
    let (method, target) = line.split_once(' ').unwrap();
    Request::new(Method::parse(method).unwrap(), target)
}

/// What the bodies of webhooks say: the action and the name of the job.
pub(super) fn actions(deliveries: &[Delivery]) -> Vec<String> {
    let read = |delivery: &Delivery| {
        let body: Value = serde_json::from_slice(&delivery.body).unwrap();
        format!("{} {}", body["action"].as_str().unwrap(), body["workflow_job"]["name"].as_str().unwrap())
    };
    deliveries.iter().map(read).collect()
}

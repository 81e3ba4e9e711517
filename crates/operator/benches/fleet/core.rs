//! The fleet's core as it takes what the border has received, with the hands that it needs for that: one pool of an organisation, and a
//! CI platform on which it finds nothing more.

use crate::fleet::border::Border;
use change::{Live, Moment, Now};
use fleet::forge::{self, Failure, Jobs, Runners};
use fleet::hypervisor;
use fleet::outside::{Answer, Ask, Reply, Request};
use fleet::{Concurrency, Config, Core, Notice};
use jiff::Timestamp;
use protocol::{Body, Command, Core as _, Discovered, Event, Groups, Kinds, WatchEvent, WatchTarget, Written};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the core looks at the clock.
const TICK: Duration = Duration::from_millis(200);

struct Hands {
    core: Core,
    started: Instant,
    /// The request that what is received answers.
    receiving: Option<u64>,
}

/// Takes what the border receives, for ever.
pub(crate) async fn run(border: &Arc<Border>) {
    let config = Config { operator: "bench".into(), concurrency: Concurrency::default() };
    let started = Instant::now();
    let mut hands = Hands { core: Core::new(config, now(started)), started, receiving: None };
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            received = border.receive(), if hands.receiving.is_some() => {
                let reply = Reply::Received(received, Vec::new());
                let number = hands.receiving.take().unwrap_or_default();
                hands.handle(vec![Event::Elsewhere(number, Answer::Border(reply))]);
            }
            _ = ticks.tick() => hands.handle(vec![Event::Tick]),
        }
    }
}

fn now(started: Instant) -> Now {
    Now { wall: Timestamp::now(), monotonic: Moment::since_start(started.elapsed()) }
}

impl Hands {
    fn handle(&mut self, mut events: Vec<Event<Answer>>) {
        while !events.is_empty() {
            let commands = self.core.handle(std::mem::take(&mut events), now(self.started));
            for command in commands {
                events.extend(self.carry_out(command));
            }
        }
    }

    fn carry_out(&mut self, command: Command<Notice, Request>) -> Vec<Event<Answer>> {
        match command {
            Command::Discover { .. } => vec![Event::Discovered(Ok(Discovered::All(kinds())))],
            Command::Watch { target, .. } => watch(&target),
            Command::Write(write) => vec![Event::Written(write.key, Ok(Written::default()))],
            Command::Elsewhere(number, Request::Border(Ask::Receive)) => {
                self.receiving = Some(number);
                Vec::new()
            }
            Command::Elsewhere(number, request) => vec![Event::Elsewhere(number, answer(request))],
            _ => Vec::new(),
        }
    }
}

fn answer(request: Request) -> Answer {
    let nothing = || "there is nothing else".to_owned();
    match request {
        Request::Border(_) | Request::ForgetForge(_) => Answer::Border(Reply::Done),
        Request::Hypervisor(_) => Answer::Hypervisor(Err(hypervisor::Failure::Transient(nothing()))),
        Request::Forge(request) => Answer::Forge(match request.ask {
            forge::Ask::Check => Ok(forge::Answer::Checked(Box::default())),
            forge::Ask::ListJobs { .. } => Ok(forge::Answer::Jobs(Jobs::default())),
            forge::Ask::ListRunners { .. } => {
                Ok(forge::Answer::Runners(Runners { is_complete: true, ..Runners::default() }))
            }
            _ => Err(Failure::Transient(nothing())),
        }),
    }
}

/// The pool is the only object.
fn watch(target: &WatchTarget) -> Vec<Event<Answer>> {
    let (namespace, name) = ("ci".to_owned(), "linux".to_owned());
    let mut events = Vec::new();
    let mut all = std::collections::BTreeSet::new();
    if target.kind.kind == "RunnerPool" {
        let github = json!({
            "organization": "acme", "labels": ["other"], "credentials": {"token": {"name": "gh", "key": "token"}},
            "webhookSecrets": [{"name": "webhook", "key": "secret"}], "sources": ["Webhook"],
        });
        let object = json!({
            "apiVersion": "hyperfleet.io/v1alpha1", "kind": "RunnerPool",
            "metadata": {"namespace": namespace, "name": name, "uid": "u", "resourceVersion": "1", "generation": 1},
            "spec": {
                "templateRef": {"name": "small"}, "scaling": {},
                "workload": {"type": "github-actions", "config": {"github": github}},
            },
        });
        all.insert((namespace.clone(), name.clone()));
        let live = Live { uid: "u".into(), resource_version: "1".into(), ..Live::default() };
        events.push(WatchEvent::Present { namespace, name, live, generation: 1, body: Body::Whole(object) });
    }
    events.push(WatchEvent::Listed { all, version: "1".into(), verifies: false });
    events.into_iter().map(|event| Event::Watched(target.clone(), event)).collect()
}

/// What the server serves.
fn kinds() -> Kinds {
    let resource = |kind: &str| {
        let (plural, scope) = (format!("{}s", kind.to_lowercase()), "Namespaced");
        json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": ["list"]})
    };
    let version = |name: &str, kinds: &[&str]| {
        let resources: Vec<Value> = kinds.iter().map(|kind| resource(kind)).collect();
        json!({"version": name, "resources": resources})
    };
    let fleet = ["HypervisorCluster", "HypervisorMachineTemplate", "RunnerPool", "MachineClaim"];
    let core = json!({"items": [{"metadata": {}, "versions": [version("v1", &["Secret"])]}]});
    let groups = json!({"items": [
        {"metadata": {"name": "hyperfleet.io"}, "versions": [version("v1alpha1", &fleet)]},
        {"metadata": {"name": "apiextensions.k8s.io"}, "versions": [version("v1", &["CustomResourceDefinition"])]},
    ]});
    let groups = Groups::read(&groups.to_string(), "tag".into()).unwrap();
    Kinds::read(&core.to_string(), groups).unwrap()
}

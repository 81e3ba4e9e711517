//! Other credentials lead to a check at once, also while one is in flight, and also if they were missing before.

use super::api_server::{kinds, live};
use crate::core::{Concurrency, Config, Core};
use crate::hypervisor::{Answer, Checked, Failure, Operation, Request};
use crate::notice::Notice;
use crate::outside;
use change::{Key, Kind, Moment, Now};
use jiff::Timestamp;
use protocol::{Body, Command, Core as _, Discovered, Event, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::time::Duration;

fn at(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn present(object: &Value, body: Body) -> WatchEvent {
    let name = object["metadata"]["name"].as_str().unwrap().into();
    WatchEvent::Present { namespace: "ci".into(), name, live: live(object), generation: 1, body }
}

fn secret(version: &str) -> Event<crate::outside::Answer> {
    let key = Key { kind: Kind::new("v1", "Secret"), namespace: "ci".into(), name: "token".into() };
    let object = json!({"metadata": {"name": "token", "namespace": "ci", "uid": "s", "resourceVersion": version}});
    Event::Watched(WatchTarget::only(&key), present(&object, Body::None))
}

/// The numbers of the checks among commands.
fn checks(commands: &[Command<Notice, outside::Request>]) -> Vec<u64> {
    let number = |command: &Command<Notice, outside::Request>| match command {
        Command::Elsewhere(number, outside::Request::Hypervisor(Request { operation: Operation::Check, .. })) => {
            Some(*number)
        }
        _ => None,
    };
    commands.iter().filter_map(number).collect()
}

fn good() -> outside::Answer {
    let checked = Checked { is_quorate: true, ..Checked::default() };
    outside::Answer::Hypervisor(Ok(Answer::Checked(Box::new(checked))))
}

/// A core that knows one hypervisor, and the number of its first check.
fn start() -> (Core, u64) {
    let mut core = Core::new(Config { operator: "o".into(), concurrency: Concurrency::default() }, at(0));
    core.handle(vec![Event::Tick], at(0));
    core.handle(vec![Event::Discovered(Ok(Discovered::All(kinds())))], at(0));
    let key = |key: &str| json!({"name": "token", "key": key});
    let cluster = json!({
        "metadata": {"name": "pve", "namespace": "ci", "uid": "c", "resourceVersion": "5"},
        "spec": {
            "provider": "proxmox", "endpoint": "https://pve:8006",
            "credentials": {"tokenId": key("id"), "tokenSecret": key("secret")},
        },
    });
    let target = WatchTarget {
        kind: crate::object::fleet_kind("HypervisorCluster"),
        namespace: String::new(),
        name: String::new(),
    };
    let seen = Event::Watched(target, present(&cluster, Body::Whole(cluster.clone())));
    let first = checks(&core.handle(vec![seen], at(1)));
    assert_eq!(first.len(), 1);
    (core, first[0])
}

#[test]
fn credentials_that_change_during_a_check_lead_to_another_one() {
    let (mut core, first) = start();
    assert_eq!(checks(&core.handle(vec![secret("7")], at(1))), [0_u64; 0], "it was there when the check began");
    assert_eq!(checks(&core.handle(vec![secret("8")], at(2))), [0_u64; 0], "a check is in flight");
    let again = checks(&core.handle(vec![Event::Elsewhere(first, good())], at(3)));
    assert_eq!(again.len(), 1, "the first one may have used the former credentials");
    assert_eq!(checks(&core.handle(vec![Event::Elsewhere(again[0], good())], at(4))), [0_u64; 0]);
    assert_eq!(checks(&core.handle(vec![secret("8")], at(5))), [0_u64; 0], "nothing has changed");
    assert_eq!(checks(&core.handle(vec![secret("9")], at(6))).len(), 1);
}

#[test]
fn a_secret_that_was_missing_leads_to_a_check_when_it_is_there() {
    let (mut core, first) = start();
    let missing = Failure::Configuration { message: "there is no Secret".into(), remedy: "create it".into() };
    assert_eq!(
        checks(&core.handle(vec![Event::Elsewhere(first, outside::Answer::Hypervisor(Err(missing)))], at(2))),
        [0_u64; 0]
    );
    assert_eq!(checks(&core.handle(vec![secret("7")], at(3))).len(), 1);
}

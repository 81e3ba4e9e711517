//! A pool whose spec, machines and server change while it is managed.

use super::api_server::{Id, id};
use super::scripted::{Reply, Scripted};
use crate::hypervisor::Operation;
use serde_json::{Value, json};

fn usual(_: &Operation, _: u64) -> Reply {
    Reply::Usual
}

fn pool(world: &mut Scripted, scaling: &Value, lifecycle: &Value) -> Id {
    let spec = json!({"templateRef": {"name": "small"}, "scaling": scaling, "lifecycle": lifecycle, "keepFailed": 0});
    world.hypervisor.keeps_running = true;
    world.create("RunnerPool", "pool", &spec);
    id("RunnerPool", "pool")
}

fn replicas(world: &Scripted) -> (i64, usize) {
    let status = &world.api.objects[&id("RunnerPool", "pool")]["status"];
    (status["readyReplicas"].as_i64().unwrap_or(-1), world.api.all("MachineClaim").len())
}

/// P16: what is changed in the spec of a pool is followed, up and down.
#[test]
fn a_pool_follows_its_spec() {
    let mut world = Scripted::new();
    let id = pool(&mut world, &json!({"minReplicas": 1, "maxReplicas": 5, "scaleDownDelay": "10s"}), &json!({}));
    world.run_until(120, usual);
    assert_eq!(replicas(&world), (1, 1));
    for (at, min, max) in [(240, 4, 5), (400, 0, 2), (560, 3, 8)] {
        world.api.edit(&id, |spec| {
            (spec["scaling"]["minReplicas"], spec["scaling"]["maxReplicas"]) = (json!(min), json!(max));
        });
        world.run_until(at, usual);
        let wanted = usize::try_from(min).unwrap();
        assert_eq!(replicas(&world), (i64::from(min), wanted), "at second {at}");
        assert_eq!(world.hypervisor.vms.len(), wanted, "at second {at}");
    }
}

/// P10: a machine that is too old is ended, and another one takes its place.
#[test]
fn a_machine_that_is_too_old_is_replaced() {
    let mut world = Scripted::new();
    pool(&mut world, &json!({"minReplicas": 2, "maxReplicas": 2}), &json!({"maxLifetime": "5m"}));
    world.run_until(200, usual);
    let first = world.api.all("MachineClaim");
    assert_eq!(first.len(), 2);
    world.run_until(500, usual);
    let second = world.api.all("MachineClaim");
    assert_eq!((second.len(), first.intersection(&second).count()), (2, 0));
    assert_eq!(replicas(&world).0, 2);
}

#[test]
fn a_machine_is_idle_from_the_end_of_its_work() {
    let mut world = Scripted::new();
    let scaling = json!({"maxReplicas": 2, "scaleDownDelay": "0s", "spares": {"booted": 0}});
    let id_of_pool = pool(&mut world, &scaling, &json!({"idleTimeout": "2m"}));
    world.api.edit(&id_of_pool, |spec| spec["scaling"]["minReplicas"] = json!(1));
    world.run_until(60, usual);
    let claim = id("MachineClaim", &world.api.all("MachineClaim").pop_first().unwrap().1);
    world.api.annotate(&claim, api::fleet::BUSY, Some("true"));
    // Nobody wants it any more, except the job that it has.
    world.api.edit(&id_of_pool, |spec| {
        (spec["scaling"]["minReplicas"], spec["scaling"]["scaleDownDelay"]) = (json!(0), json!("1h"));
    });
    world.run_until(1_000, usual);
    assert_eq!(world.api.objects[&claim]["status"]["idleSince"], Value::Null);
    world.api.annotate(&claim, api::fleet::BUSY, None);
    world.run_until(1_100, usual);
    assert!(world.api.objects.contains_key(&claim), "it is idle for 100 seconds, not for 1,100");
    world.run_until(1_300, usual);
    assert_eq!(replicas(&world).1, 0);
}

/// P27 while it is drained: a job that ends with its machine leaves nothing behind.
#[test]
fn a_drained_machine_that_stops_while_it_is_busy_is_gone_within_five_minutes() {
    let mut world = Scripted::new();
    let id_of_pool = pool(&mut world, &json!({"minReplicas": 1, "maxReplicas": 1}), &json!({}));
    world.run_until(100, usual);
    let claim = id("MachineClaim", &world.api.all("MachineClaim").pop_first().unwrap().1);
    world.api.annotate(&claim, api::fleet::BUSY, Some("true"));
    world.run_until(110, usual);
    world.delete("RunnerPool", "pool");
    world.run_until(200, usual);
    assert_eq!(world.said(&claim.2).unwrap().0, "Draining Busy");
    for machine in world.hypervisor.vms.values_mut() {
        machine.power = crate::hypervisor::Power::Stopped;
    }
    world.run_until(500, usual);
    assert!(!world.api.objects.contains_key(&claim) && !world.api.objects.contains_key(&id_of_pool));
    assert_eq!(world.hypervisor.vms.len(), 0);
}

/// The status of a claim says why the operator has deleted it, while its machine is still there.
#[test]
fn a_claim_that_ends_says_why() {
    let mut world = Scripted::new();
    world.create("MachineClaim", "one", &json!({"templateRef": {"name": "small"}, "ttl": "2m"}));
    world.run_until(119, usual);
    let hold = |operation: &Operation, _: u64| match operation {
        Operation::Destroy { .. } => Reply::Later,
        _ => Reply::Usual,
    };
    world.run_until(125, hold);
    let (state, message) = world.said("one").unwrap();
    assert_eq!((state.as_str(), message.as_str()), ("Terminating Expired", "the ttl of the claim is over"));
    world.release(usual);
    world.run_until(200, usual);
    assert_eq!(world.said("one"), None);
}

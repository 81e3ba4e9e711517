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

/// How many claims are ready.
fn ready(world: &Scripted) -> usize {
    let claims = world.api.all("MachineClaim");
    claims.iter().filter(|(_, name)| world.said(name).is_some_and(|(state, _)| state.starts_with("Ready"))).count()
}

/// The CPUs of the machines that claims have now, by the generations of the template that they were made of.
fn generations(world: &Scripted) -> Vec<(String, i64)> {
    let claims = world.api.all("MachineClaim");
    let of = |name: &str| {
        let spec = &world.api.objects[&id("MachineClaim", name)]["spec"];
        let template = spec["templateRef"]["name"].as_str().unwrap().to_owned();
        (template, spec["templateGeneration"].as_i64().unwrap())
    };
    let mut all: Vec<(String, i64)> = claims.iter().map(|(_, name)| of(name)).collect();
    all.sort();
    all.dedup();
    all
}

/// R3 and P16: a pool follows its template, a quarter of its machines at a time, and what is busy stays.
#[test]
fn a_pool_follows_its_template_a_few_machines_at_a_time() {
    let mut world = Scripted::new();
    let scaling = json!({"minReplicas": 8, "maxReplicas": 12, "spares": {"booted": 0, "stopped": 2}});
    let id_of_pool = pool(&mut world, &scaling, &json!({}));
    world.run_until(200, usual);
    assert_eq!(ready(&world), 8);
    let name = world
        .api
        .all("MachineClaim")
        .into_iter()
        .find(|(_, name)| world.said(name).is_some_and(|(state, _)| state.starts_with("Ready")));
    let busy = id("MachineClaim", &name.unwrap().1);
    world.api.annotate(&busy, api::fleet::BUSY, Some("true"));
    let small = id("HypervisorMachineTemplate", "small");
    world.api.edit(&small, |spec| spec["resources"]["cpu"] = json!(2));
    let mut fewest = 8;
    for second in 200..1_500 {
        world.run_until(second, usual);
        fewest = fewest.min(ready(&world));
    }
    let of = |generation: i64| ("small".to_owned(), generation);
    assert_eq!(generations(&world), [of(1), of(2)], "the one that is busy is of the first");
    assert!((6..8).contains(&fewest), "{fewest}");
    world.api.annotate(&busy, api::fleet::BUSY, None);
    world.run_until(1_700, usual);
    assert_eq!((generations(&world), ready(&world)), (vec![of(2)], 8));
    let large = world.api.objects[&small]["spec"].clone();
    world.create("HypervisorMachineTemplate", "large", &large);
    world.api.edit(&id_of_pool, |spec| spec["templateRef"]["name"] = json!("large"));
    world.run_until(3_000, usual);
    assert_eq!((generations(&world), ready(&world)), (vec![("large".to_owned(), 1)], 8));
    assert_eq!(world.hypervisor.vms.len(), 10);
    let created = world.hypervisor.clones;
    world.run_until(5_000, usual);
    assert_eq!(world.hypervisor.clones, created, "then nothing is replaced any more");
}

#[test]
fn a_template_that_cannot_be_used_replaces_no_machine() {
    let mut world = Scripted::new();
    let id_of_pool = pool(&mut world, &json!({"minReplicas": 3, "maxReplicas": 3}), &json!({}));
    world.run_until(200, usual);
    let before = world.api.all("MachineClaim");
    world.api.edit(&id("HypervisorMachineTemplate", "small"), |spec| spec["resources"]["cpu"] = json!(10_000));
    world.run_until(800, usual);
    world.api.edit(&id_of_pool, |spec| spec["templateRef"]["name"] = json!("missing"));
    world.run_until(1_400, usual);
    assert_eq!((world.api.all("MachineClaim"), ready(&world)), (before, 3));
}

#[test]
fn a_stopped_spare_is_replaced_when_it_is_too_old() {
    let mut world = Scripted::new();
    let scaling = json!({"maxReplicas": 3, "spares": {"booted": 0, "stopped": 3}});
    pool(&mut world, &scaling, &json!({"maxLifetime": "10m"}));
    world.run_until(500, usual);
    let first = world.api.all("MachineClaim");
    assert_eq!(first.len(), 3);
    let mut fewest = 3;
    for second in 500..1_000 {
        world.run_until(second, usual);
        fewest = fewest.min(world.hypervisor.vms.values().filter(|vm| vm.is_configured).count());
    }
    let second = world.api.all("MachineClaim");
    assert_eq!((second.len(), first.intersection(&second).count()), (3, 0));
    assert!(fewest >= 2, "one after the other: {fewest}");
}

/// P10: machines that were started together do not end together.
#[test]
fn machines_of_one_age_end_one_after_the_other_and_none_is_too_old() {
    let mut world = Scripted::new();
    pool(&mut world, &json!({"minReplicas": 10, "maxReplicas": 20}), &json!({"maxLifetime": "1h"}));
    world.run_until(300, usual);
    let first = world.api.all("MachineClaim");
    assert_eq!(first.len(), 10);
    let mut left = Vec::new();
    for second in [3_200, 3_400, 3_600, 3_700] {
        world.run_until(second, usual);
        left.push(first.intersection(&world.api.all("MachineClaim")).count());
    }
    assert_eq!((left[0], left[3]), (10, 0), "{left:?}");
    assert!((1..10).contains(&left[1]), "{left:?}");
}

#[test]
fn a_template_stays_while_a_pool_names_it_although_it_has_no_claim() {
    let mut world = Scripted::new();
    let id_of_pool = pool(&mut world, &json!({"maxReplicas": 3}), &json!({}));
    world.run_until(100, usual);
    let small = id("HypervisorMachineTemplate", "small");
    world.delete("HypervisorMachineTemplate", "small");
    world.run_until(200, usual);
    let conditions = world.api.objects[&small]["status"]["conditions"].to_string();
    assert!(conditions.contains("when no RunnerPool names it: ci/pool"), "{conditions}");
    world.api.edit(&id_of_pool, |spec| spec["templateRef"]["name"] = json!("other"));
    world.run_until(300, usual);
    assert!(!world.api.objects.contains_key(&small));
}

/// The answer to a write says nothing of the spec that it has changed.
#[test]
fn a_spare_that_is_wanted_is_started_with_one_write() {
    let mut world = Scripted::new();
    let id_of_pool = pool(&mut world, &json!({"maxReplicas": 2, "spares": {"booted": 0, "stopped": 1}}), &json!({}));
    world.run_until(100, usual);
    let (_, spare) = world.api.all("MachineClaim").pop_first().unwrap();
    let version = |world: &Scripted| {
        let version = &world.api.objects[&id("MachineClaim", &spare)]["metadata"]["resourceVersion"];
        version.as_str().unwrap().parse::<u64>().unwrap()
    };
    let before = version(&world);
    world.api.edit(&id_of_pool, |spec| spec["replicas"] = json!(1));
    world.run_until(300, usual);
    assert_eq!(world.said(&spare).unwrap().0, "Ready Ready");
    assert!(version(&world) < before + 30, "{before} {}", version(&world));
}

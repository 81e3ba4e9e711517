//! What keeps claims waiting, in which order they go on, and for how long nobody waits.

use super::api_server::id;
use super::scripted::{Reply, Scripted, configuration};
use crate::hypervisor::{Failure, Operation};
use serde_json::{Value, json};

fn usual(_: &Operation, _: u64) -> Reply {
    Reply::Usual
}

fn is_create(operation: &Operation) -> bool {
    matches!(operation, Operation::Create(_))
}

/// For whom clones were begun, in their order.
fn cloned(world: &Scripted) -> Vec<String> {
    let creates = world.asked.iter().filter_map(|(_, operation)| match operation {
        Operation::Create(blueprint) => Some(blueprint.name.clone()),
        _ => None,
    });
    creates.collect()
}

/// One clone at a time: a claim with a late name that came early is not overtaken by others that come all the time, whatever their nodes.
#[test]
fn clones_are_made_in_the_order_in_which_claims_came() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| {
        spec["limits"] = json!({"clonesPerStorage": 1, "clonesPerNode": 5});
    });
    let hold = |operation: &Operation, _: u64| if is_create(operation) { Reply::Later } else { Reply::Usual };
    let mut expected = Vec::new();
    for number in 0..12 {
        let name = format!("{}-{number}", char::from(b'z' - number));
        world.claim(&name);
        expected.push(name);
        world.run_until(u64::from(number) + 20, hold);
        if number % 3 == 2 {
            world.release(hold);
        }
    }
    for _ in 0..12 {
        world.release(hold);
    }
    assert_eq!(cloned(&world), expected);
    let nodes: std::collections::BTreeSet<_> = world.hypervisor.vms.values().map(|vm| vm.node.clone()).collect();
    assert_eq!(nodes.len(), 2, "they wait on both nodes");
}

/// Node b does not answer, and its machines are listed without names: claims wait for a minute, and then only keep off that node.
#[test]
fn a_node_whose_machines_cannot_be_looked_at_keeps_claims_off_that_node_only() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["vmIds"] = json!({"from": 200, "to": 299}));
    for number in 0..20 {
        world.hypervisor.foreigner_creates((200 + number).to_string(), None);
    }
    world.hypervisor.is_nameless = true;
    let silent = |operation: &Operation, _: u64| match operation {
        Operation::Inspect(id) if id.0.as_str() < "220" => Reply::Later,
        _ => Reply::Usual,
    };
    for name in ["one", "two", "three"] {
        world.claim(name);
    }
    world.run_until(40, silent);
    assert_eq!(world.said("one").unwrap().0, "Pending Surveying", "one of them may be its machine");
    world.run_until(130, silent);
    let nodes: Vec<String> = ["one", "two", "three"].map(|name| node(&world, name)).to_vec();
    assert_eq!(nodes, ["a", "a", "a"]);
    // They answer again.
    world.hypervisor.is_nameless = false;
    for _ in 0..6 {
        world.release(usual);
    }
    world.run_until(200, usual);
    world.claim("four");
    world.run_until(240, usual);
    assert_eq!(node(&world, "four"), "b", "it has more room");
}

fn node(world: &Scripted, claim: &str) -> String {
    let claim = &world.api.objects[&id("MachineClaim", claim)];
    claim["status"]["vmRef"]["node"].as_str().unwrap_or_default().to_owned()
}

/// What waits for a hypervisor whose object is deleted says so at once.
#[test]
fn a_hypervisor_that_is_gone_is_shown_by_its_templates_and_by_claims_that_wait() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["limits"] = json!({"machines": 1}));
    for name in ["one", "two"] {
        world.claim(name);
    }
    world.run_until(40, usual);
    assert_eq!(world.said("two").unwrap().0, "Pending LimitReached");
    let cluster = id("HypervisorCluster", "pve");
    world.api.remove_finalizers(&cluster);
    world.delete("HypervisorCluster", "pve");
    world.run_until(41, usual);
    assert_eq!(world.said("two").unwrap().0, "Pending ClusterNotFound");
    let template = &world.api.objects[&id("HypervisorMachineTemplate", "small")];
    let available: Vec<&Value> = template["status"]["conditions"].as_array().unwrap().iter().collect();
    assert!(available.iter().all(|condition| condition["status"] != "True"), "{available:?}");
}

/// Themes 6 and 7: a claim of a pool whose machine cannot be made is given up, kept for a look, and replaced; not again and again.
#[test]
fn a_pool_gives_up_a_claim_that_cannot_be_provisioned_and_makes_others_with_pauses() {
    let mut world = Scripted::new();
    world.hypervisor.keeps_running = true;
    world.create(
        "RunnerPool",
        "pool",
        &json!({
            "templateRef": {"name": "small"}, "scaling": {"minReplicas": 1, "maxReplicas": 2}, "keepFailed": 1,
            "lifecycle": {"provisioningTimeout": "10m"},
        }),
    );
    world.claim("person");
    let refuse = |operation: &Operation, second: u64| match operation {
        Operation::Create(_) if second < 4_000 => configuration("can't clone to non-shared storage 'local-lvm'"),
        _ => Reply::Usual,
    };
    world.run_until(590, refuse);
    let of_pool = |world: &Scripted| {
        let all = world.api.all("MachineClaim").into_iter().map(|(_, name)| name).filter(|name| name != "person");
        all.map(|name| world.said(&name).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of_pool(&world).len(), 1);
    assert_eq!(of_pool(&world)[0].0, "Provisioning ConfigurationError");
    world.run_until(1_200, refuse);
    let claims = of_pool(&world);
    let failed: Vec<_> = claims.iter().filter(|(state, _)| state == "Failed ProvisioningTimeout").collect();
    assert_eq!((claims.len(), failed.len()), (2, 1), "{claims:?}");
    assert!(
        failed[0].1.contains("non-shared storage") && failed[0].1.starts_with("no machine after"),
        "{}",
        failed[0].1
    );
    world.run_until(3_990, refuse);
    let pool = &world.api.objects[&id("RunnerPool", "pool")]["status"];
    assert_eq!((of_pool(&world).len(), &pool["failedReplicas"]), (2, &json!(1)), "one is kept");
    let owners: std::collections::BTreeSet<_> = cloned(&world).into_iter().collect();
    assert!((4..=8).contains(&owners.len()), "a claim every ten minutes or so: {owners:?}");
    assert_eq!(world.said("person").unwrap().0, "Provisioning ConfigurationError", "nobody would replace it");
    world.run_until(5_000, refuse);
    assert_eq!(world.said("person").unwrap().0, "Ready Ready");
    assert_eq!(world.api.objects[&id("RunnerPool", "pool")]["status"]["readyReplicas"], 1);
}

/// An outage is no reason: what was not tried again is not given up.
#[test]
fn an_outage_gives_up_no_claim_of_a_pool() {
    let mut world = Scripted::new();
    world.hypervisor.keeps_running = true;
    world.run_until(40, usual);
    world.create(
        "RunnerPool",
        "pool",
        &json!({
            "templateRef": {"name": "small"}, "scaling": {"minReplicas": 2, "maxReplicas": 2},
        }),
    );
    let outage = |operation: &Operation, second: u64| match operation {
        Operation::Create(_) if second < 45 => Reply::Instead(Err(Failure::Transient("no route".into()))),
        _ if (45..3_600).contains(&second) => Reply::Instead(Err(Failure::Transient("no route".into()))),
        _ => Reply::Usual,
    };
    world.run_until(3_590, outage);
    let before = world.api.all("MachineClaim");
    world.run_until(4_000, outage);
    assert_eq!((before.len(), world.api.all("MachineClaim")), (2, before));
    assert_eq!(world.api.objects[&id("RunnerPool", "pool")]["status"]["readyReplicas"], 2);
}

/// After a restart: a machine that is being made has its place, although nobody knows yet whether it exists.
#[test]
fn what_an_earlier_process_has_promised_is_promised_to_nobody_else() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorMachineTemplate", "small"), |spec| {
        spec["template"]["proxmox"]["linkedClone"] = json!(false);
        spec["resources"]["disk"] = json!("600Gi");
    });
    let hold = |operation: &Operation, _: u64| match operation {
        Operation::Create(_) | Operation::Inspect(_) => Reply::Later,
        _ => Reply::Usual,
    };
    world.claim("one");
    world.run_until(20, hold);
    assert_eq!(cloned(&world), ["one"]);
    world.restart();
    world.claim("two");
    world.run_until(60, hold);
    assert_eq!(world.said("two").unwrap().0, "Pending InsufficientResources");
    assert_eq!((cloned(&world).len(), world.cpus_taken()), (1, 1));
    world.delete("MachineClaim", "one");
    world.release(usual);
    world.run_until(140, usual);
    assert_eq!(cloned(&world).last().map(String::as_str), Some("two"), "its room is free when it is gone");
}

/// A claim that this version cannot read has a machine all the same.
#[test]
fn a_pool_counts_claims_that_cannot_be_read_against_its_maximum() {
    let mut world = Scripted::new();
    world.hypervisor.keeps_running = true;
    world.create(
        "RunnerPool",
        "pool",
        &json!({
            "templateRef": {"name": "small"}, "scaling": {"minReplicas": 2, "maxReplicas": 2},
        }),
    );
    world.run_until(100, usual);
    let claims = world.api.all("MachineClaim");
    let unreadable = id("MachineClaim", &claims.first().unwrap().1);
    world.api.edit(&unreadable, |spec| spec["power"] = json!("Hibernating"));
    world.restart();
    world.run_until(300, usual);
    assert_eq!(world.api.all("MachineClaim"), claims);
    world.api.edit(&unreadable, |spec| spec["power"] = json!("Running"));
    world.run_until(400, usual);
    assert_eq!(world.api.objects[&id("RunnerPool", "pool")]["status"]["readyReplicas"], 2);
    world.api.edit(&unreadable, |spec| spec["power"] = json!("Hibernating"));
    world.restart();
    world.run_until(420, usual);
    world.api.remove_finalizers(&unreadable);
    world.delete("MachineClaim", &unreadable.2);
    world.run_until(500, usual);
    assert_eq!(world.api.all("MachineClaim").len(), 2, "another one has taken its place");
}

//! One trouble each, from its first sign to its end: what is shown, what is asked, and how often.

use super::api_server::id;
use super::scripted::{Reply, Scripted, configuration};
use crate::hypervisor::{Answer, Failure, Operation};
use serde_json::json;

fn is_create(operation: &Operation) -> bool {
    matches!(operation, Operation::Create(_))
}

/// Whatever the answer was, unless it was refused for certain: only the hypervisor knows whether there is a machine.
#[test]
fn a_claim_whose_clone_has_failed_goes_only_after_its_machine_was_looked_for() {
    let failures = [
        Failure::Configuration { message: "no storage".into(), remedy: "name one".into() },
        Failure::Resource { message: "no space".into(), remedy: "free some".into() },
    ];
    for failure in failures {
        let mut world = Scripted::new();
        world.claim("one");
        world.run_until(5, |operation, _| match operation {
            Operation::Create(_) => Reply::Instead(Err(failure.clone())),
            _ => Reply::Usual,
        });
        assert_eq!(world.times(is_create).len(), 1, "{failure:?}");
        // The clone was made all the same.
        let (_, create) = world.asked.iter().find(|(_, operation)| is_create(operation)).cloned().unwrap();
        let mut random = super::random::Random(1);
        world.hypervisor.carry_out(&create, 5_000, &mut random).unwrap();
        world.delete("MachineClaim", "one");
        world.run_until(10, |_, _| Reply::Usual);
        assert!(world.hypervisor.vms.is_empty(), "{failure:?}: an orphan is left");
        assert_eq!(world.said("one"), None, "{failure:?}: it does not wait for the next attempt");
    }
}

/// Proxmox VE finds out that a bridge does not exist when a machine starts.
#[test]
fn a_machine_that_cannot_start_with_its_template_starts_once_the_template_is_corrected() {
    let mut world = Scripted::new();
    let small = id("HypervisorMachineTemplate", "small");
    world.api.edit(&small, |spec| spec["network"] = json!({"bridge": "vmbr9"}));
    world.claim("one");
    let mut bridge = String::new();
    let mut reply = |operation: &Operation, _: u64| match operation {
        Operation::Configure(blueprint) => {
            bridge = blueprint.network.as_ref().unwrap().bridge.clone();
            Reply::Usual
        }
        Operation::Start(_) if bridge == "vmbr9" => configuration("bridge 'vmbr9' does not exist"),
        _ => Reply::Usual,
    };
    world.run_until(600, &mut reply);
    let (phase, message) = world.said("one").unwrap();
    assert_eq!(phase, "Provisioning ConfigurationError");
    assert_eq!(message, "bridge 'vmbr9' does not exist; correct it");
    let starts = world.times(|operation| matches!(operation, Operation::Start(_))).len();
    assert!((3..=8).contains(&starts), "the pauses grow: {starts} attempts");
    world.api.edit(&small, |spec| spec["network"]["bridge"] = json!("vmbr0"));
    world.run_until(602, &mut reply);
    assert_eq!(world.said("one").unwrap().0, "Bootstrapping WaitingForGuest");
    world.run_until(680, &mut reply);
    assert_eq!(world.said("one").unwrap().0, "Ready Ready");
}

#[test]
fn a_guest_that_may_not_be_asked_is_shown_as_such_and_asked_seldom() {
    let mut world = Scripted::new();
    world.claim("one");
    world.run_until(300, |operation, _| match operation {
        Operation::Addresses(_) => configuration("Permission check failed (/vms/200, VM.GuestAgent.Audit)"),
        _ => Reply::Usual,
    });
    let (phase, message) = world.said("one").unwrap();
    assert_eq!(phase, "Bootstrapping ConfigurationError");
    assert!(message.contains("VM.GuestAgent.Audit") && message.contains("correct it"), "{message}");
    let asked = world.times(|operation| matches!(operation, Operation::Addresses(_))).len();
    assert!((2..=6).contains(&asked), "{asked} questions");
    assert!(world.claim_writes <= 15, "{} writes", world.claim_writes);
    for vm in world.hypervisor.vms.values_mut() {
        vm.ends_at = u64::MAX;
    }
    world.run_until(550, |operation, second| match operation {
        Operation::Addresses(_) if second < 400 => configuration("Permission check failed"),
        _ => Reply::Usual,
    });
    assert_eq!(world.said("one").unwrap().0, "Ready Ready");
}

fn is_check(operation: &Operation) -> bool {
    matches!(operation, Operation::Check)
}

#[test]
fn a_lost_quorum_is_shown_within_seconds_and_its_end_within_half_a_minute() {
    let mut world = Scripted::new();
    world.run_until(100, |_, _| Reply::Usual);
    world.claim("one");
    let reply = |operation: &Operation, second: u64| match operation {
        _ if !(100..200).contains(&second) => Reply::Usual,
        Operation::Check => Reply::Instead(Ok(Answer::Checked(Box::default()))),
        Operation::List | Operation::FindTemplate(_) | Operation::Inspect(_) => Reply::Usual,
        _ => Reply::Instead(Err(Failure::NoQuorum("cluster not ready (500)".into()))),
    };
    world.run_until(102, reply);
    assert_eq!(world.cluster_condition("Ready").1, "NoQuorum");
    world.run_until(225, reply);
    assert_eq!(world.cluster_condition("Ready").1, "ConnectionSuccessful");
    assert_eq!(world.hypervisor.vms.len(), 1, "the claim goes on at once");
}

#[test]
fn a_second_failed_list_leads_to_a_check_that_says_why() {
    let mut world = Scripted::new();
    world.run_until(100, |_, _| Reply::Usual);
    world.run_until(140, |operation, _| match operation {
        Operation::List | Operation::Check => configuration("the token has expired"),
        _ => Reply::Usual,
    });
    let (_, reason, message) = world.cluster_condition("Ready");
    assert_eq!((reason.as_str(), message.as_str()), ("ConfigurationError", "the token has expired; correct it"));
}

#[test]
fn many_claims_that_fail_lead_to_a_check_every_15_seconds_at_most() {
    let mut world = Scripted::new();
    for number in 0..40 {
        world.claim(&format!("c-{number}"));
    }
    world.run_until(300, |operation, _| match operation {
        Operation::Create(_) => configuration("no such storage"),
        _ => Reply::Usual,
    });
    let checks = world.times(is_check);
    assert!((5..=22).contains(&checks.len()), "{checks:?}");
    assert!(checks.windows(2).all(|pair| pair[1] - pair[0] >= 14), "{checks:?}");
}

#[test]
fn a_claim_that_fails_for_a_quarter_of_an_hour_says_so_and_goes_on() {
    let mut world = Scripted::new();
    world.claim("one");
    let reply = |operation: &Operation, second: u64| match operation {
        Operation::Create(_) if second < 1_500 => Reply::Instead(Err(Failure::Transient("got timeout".into()))),
        _ => Reply::Usual,
    };
    world.run_until(600, reply);
    assert_eq!(world.said("one").unwrap().0, "Provisioning Retrying");
    world.run_until(1_200, reply);
    let (phase, message) = world.said("one").unwrap();
    assert_eq!(phase, "Provisioning ProvisioningStuck");
    assert!(message.starts_with("got timeout; ") && message.contains("look at the hypervisor"), "{message}");
    world.run_until(1_800, reply);
    assert_eq!(world.hypervisor.clones, 1);
}

/// Theme 6: a list shows a machine that is halted as running.
#[test]
fn a_machine_that_is_halted_is_shown_and_a_pool_replaces_it() {
    let mut world = Scripted::new();
    world.hypervisor.keeps_running = true;
    world.create(
        "RunnerPool",
        "pool",
        &json!({
            "templateRef": {"name": "small"}, "scaling": {"minReplicas": 1, "maxReplicas": 2}, "keepFailed": 1,
        }),
    );
    world.claim("person");
    world.run_until(300, |_, _| Reply::Usual);
    let claims = world.api.all("MachineClaim");
    let of_pool = claims.iter().map(|(_, name)| name.clone()).find(|name| name != "person").unwrap();
    assert_eq!((claims.len(), world.said(&of_pool).unwrap().0.as_str()), (2, "Ready Ready"));
    let writes = world.claim_writes;
    world.hypervisor.vms.values_mut().for_each(|vm| vm.halted = Some("io-error".into()));
    world.run_until(400, |_, _| Reply::Usual);
    for name in ["person", of_pool.as_str()] {
        let (state, message) = world.said(name).unwrap();
        assert_eq!(state, "Bootstrapping MachineHalted");
        assert!(message.contains("(io-error)"), "{message}");
    }
    assert!(world.claim_writes - writes <= 4, "it is written once");
    world.run_until(800, |_, _| Reply::Usual);
    assert_eq!(world.said(&of_pool).unwrap().0, "Failed MachineHalted");
    assert_eq!(world.said("person").unwrap().0, "Bootstrapping MachineHalted", "nobody would replace it");
    assert_eq!(world.api.objects[&id("RunnerPool", "pool")]["status"]["readyReplicas"], 1);
    world.hypervisor.vms.values_mut().for_each(|vm| vm.halted = None);
    world.run_until(1_000, |_, _| Reply::Usual);
    assert_eq!(world.said("person").unwrap().0, "Ready Ready", "somebody has resumed it");
    let looks = world.times(|operation| matches!(operation, Operation::Look(_))).len();
    assert!(looks <= 1_000 / 30 * 3, "{looks}");
}

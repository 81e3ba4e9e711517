//! One trouble each, from its first sign to its end: what is shown, what is asked, and how often.

use super::api_server::id;
use super::scripted::{Reply, Scripted, configuration};
use crate::hypervisor::{Failure, Operation};

fn is_create(operation: &Operation) -> bool {
    matches!(operation, Operation::Create(_))
}

/// Whatever the answer was, unless it was refused for certain: only the hypervisor knows whether there is a machine.
#[test]
fn a_claim_whose_clone_has_failed_goes_only_after_its_machine_was_looked_for() {
    let failures = [
        Failure::Configuration { message: "no storage".into(), remedy: "name one".into() },
        Failure::Resource("no space".into()),
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

//! Where a claim is placed again after a storage was full.

use super::scripted::{Reply, Scripted};
use crate::hypervisor::{Failure, Operation};

#[test]
fn a_claim_whose_storage_was_full_takes_its_own_room_once_and_is_created_when_there_is_space() {
    let mut world = Scripted::new();
    for name in ["one", "two", "three"] {
        world.claim(name);
    }
    let full = |operation: &Operation, second: u64| match operation {
        Operation::Create(_) if second < 60 => Reply::Instead(Err(Failure::Resource {
            message: "no space left on device".into(),
            remedy: "free space".into(),
        })),
        _ => Reply::Usual,
    };
    world.run_until(58, full);
    for name in ["one", "two", "three"] {
        let (state, message) = world.said(name).unwrap();
        assert!(state.ends_with("InsufficientResources") && message.contains("no space left"), "{state}: {message}");
    }
    assert!(world.claim_writes < 60, "{} writes", world.claim_writes);
    world.run_until(140, full);
    let creations = world.times(|operation| matches!(operation, Operation::Create(_)));
    assert_eq!(creations.iter().filter(|second| **second >= 60).count(), 3, "{creations:?}");
}

//! Killed after any of its writes, the operator comes to the same end.

use crate::scene::{SCENE, play};
use crate::stage::{Stage, assert_same};
use playground::fault::{Fault, Match, Plan, Rule, Verb};
use std::num::NonZeroU64;

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_write_ends_as_if_there_had_been_none() {
    let stage = Stage::build(&SCENE).await;
    let fault_free = play(&stage, None).await;
    let mut writes = 0;
    for nth in (1..).map_while(NonZeroU64::new) {
        let matching = Match { verb: Some(Verb::Write), path: None, nth: Some(nth) };
        stage.proxy.set(Plan::from(Rule { matching, fault: Fault::KillAfterCommit {} }));
        assert_same(&play(&stage, Some(&fault_free)).await, &fault_free, &format!("killed after write {nth}"));
        if stage.proxy.fired().is_empty() {
            // There was no such write any more: it was killed after every one.
            break;
        }
        writes = nth.get();
    }
    println!("the scene takes {writes} writes");
    assert!(writes >= 15, "{writes}");
}

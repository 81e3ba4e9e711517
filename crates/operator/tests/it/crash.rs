//! Killed after any of its writes, the operator comes to the same end.

use crate::scene::{Stage, assert_same};
use playground::fault::{Fault, Match, Plan, Rule, Verb};
use std::num::NonZeroU64;

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_write_ends_as_if_there_had_been_none() {
    let stage = Stage::build().await;
    let before = stage.proxy.requests().len();
    let fault_free = stage.play().await;
    let writes = stage.proxy.requests()[before..].iter().filter(|line| line.verb == "patch").count();
    println!("the scene takes {writes} writes");
    assert!(writes >= 15, "{writes}");
    for nth in 1..=writes {
        let nth = NonZeroU64::new(u64::try_from(nth).unwrap());
        let matching = Match { verb: Some(Verb::Write), path: None, nth };
        stage.proxy.set(Plan::from(Rule { matching, fault: Fault::KillAfterCommit {} }));
        let after_crash = stage.play().await;
        assert_same(&after_crash, &fault_free, &format!("killed after write {nth:?}"));
        stage.proxy.proof().unwrap_or_else(|trouble| panic!("{trouble}"));
        stage.proxy.clear();
    }
}

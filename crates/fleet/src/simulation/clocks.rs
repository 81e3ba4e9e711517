//! A wall clock that somebody sets: nothing ends because of that, and nothing lives for longer.

use super::api_server::id;
use super::scripted::{Reply, Scripted};
use crate::hypervisor::Operation;
use serde_json::json;

fn usual(_: &Operation, _: u64) -> Reply {
    Reply::Usual
}

#[test]
fn a_clock_that_is_set_ends_no_claim_early_and_keeps_none_longer() {
    for set in [86_400, -86_400] {
        let mut world = Scripted::new();
        world.hypervisor.keeps_running = true;
        let template = json!({"name": "small"});
        world.create("MachineClaim", "ttl", &json!({"templateRef": template, "ttl": "10m"}));
        world.create("MachineClaim", "old", &json!({"templateRef": template, "maxLifetime": "10m"}));
        world.create(
            "RunnerPool",
            "pool",
            &json!({
                "templateRef": template, "scaling": {"minReplicas": 1, "maxReplicas": 3, "scaleDownDelay": "10m"},
                "lifecycle": {"maxLifetime": "10m"}, "keepFailed": 5,
            }),
        );
        world.run_until(200, usual);
        // One machine too many, and one that is still booting.
        world.api.edit(&id("RunnerPool", "pool"), |spec| spec["scaling"]["minReplicas"] = json!(2));
        world.run_until(300, usual);
        world.api.edit(&id("RunnerPool", "pool"), |spec| spec["scaling"]["minReplicas"] = json!(1));
        world.create("MachineClaim", "boots", &json!({"templateRef": template}));
        world.run_until(301, usual);
        let before = world.api.all("MachineClaim");
        assert_eq!(before.len(), 5, "{before:?}");
        world.set_clock(set);
        world.run_until(535, usual);
        assert_eq!(world.api.all("MachineClaim"), before, "nothing has ended, {set}");
        for (_, name) in &before {
            assert_eq!(world.said(name).unwrap().0, "Ready Ready", "{name}");
        }
        world.run_until(605, usual);
        assert_eq!(world.said("ttl"), None, "{set}");
        world.run_until(1_000, usual);
        let left = world.api.all("MachineClaim");
        assert!(left.len() == 2 && left.contains(&("ci".to_owned(), "boots".to_owned())), "{set}: {left:?}");
        // What is created by the clock as it is now ends by it.
        world.create("MachineClaim", "new", &json!({"templateRef": template, "ttl": "10m"}));
        world.run_until(1_590, usual);
        assert!(world.said("new").is_some(), "{set}");
        world.run_until(1_610, usual);
        assert_eq!(world.said("new"), None, "{set}");
    }
}

#[test]
fn timers_of_claims_that_are_gone_are_gone() {
    let mut world = Scripted::new();
    world.run_until(40, usual);
    let before = world.timers();
    for number in 0..20 {
        world.create("MachineClaim", &format!("c-{number}"), &json!({"templateRef": {"name": "small"}, "ttl": "100h"}));
    }
    world.run_until(100, usual);
    assert!(world.timers() >= before + 20, "{} timers", world.timers());
    for number in 0..20 {
        world.delete("MachineClaim", &format!("c-{number}"));
    }
    world.run_until(160, usual);
    assert!(world.api.all("MachineClaim").is_empty() && world.timers() <= before + 2, "{} timers", world.timers());
}

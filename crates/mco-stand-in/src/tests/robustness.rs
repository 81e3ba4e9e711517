//! Lost writes and restarts of the stand-in itself change neither the end nor the number of restarts.

use super::{Run, node, seconds};
use crate::{StandIn, Timing, control};
use std::time::Duration;

/// A small generator: the tests need variety, not randomness.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn writes_that_fail_are_made_later_and_no_node_restarts_twice() {
    for seed in 0..30 {
        let mut random = Sequence(seed);
        let mut run = Run::with_workers(4);
        run.edit_pool("worker", serde_json::json!({"spec": {"maxUnavailable": 2}}));
        run.most_unavailable = 0;
        run.add_file("90-one", "1");
        for _ in 0..4_000 {
            let writes = run.stand_in.step(&run.snapshot, run.now);
            let is_quiet = writes.is_empty();
            for write in writes {
                // One caller stops at a failure, the other one goes on.
                match random.below(3) {
                    0 if seed % 2 == 0 => break,
                    0 => continue,
                    _ => {}
                }
                run.snapshot.apply(&write);
                run.most_unavailable = run.most_unavailable.max(run.unavailable("worker"));
            }
            if is_quiet {
                if run.stand_in.wake_at().is_none() {
                    break;
                }
                run.now += seconds(random.below(40) + 1);
            }
        }
        assert!(run.holds("worker", "Updated"), "seed {seed}");
        assert_eq!(run.restarts(), [1, 1, 1, 1], "seed {seed}");
        assert!(run.most_unavailable <= 2, "seed {seed}: {}", run.most_unavailable);
    }
}

#[test]
fn a_stand_in_that_starts_anew_at_any_time_finishes_the_rollout() {
    for after in [0, 1, 5, 6, 30, 64, 65, 66, 200, 364, 365, 366, 370, 500] {
        let mut run = Run::with_workers(2);
        run.add_file("90-one", "1");
        run.wait(seconds(after));
        let before: Vec<String> =
            ["worker-0", "worker-1"].map(|name| run.node(name).annotation(control::RESTARTS).to_owned()).to_vec();
        run.stand_in = StandIn::new(Timing::real(), "2026-01-01T00:00:00Z".parse().unwrap());
        run.now = Duration::ZERO;
        run.finish();
        assert!(run.holds("worker", "Updated"), "after {after} s, {before:?}");
        assert_eq!(run.restarts(), [1, 1], "after {after} s, {before:?}");
    }
}

#[test]
fn nodes_and_pools_may_come_and_go_at_any_time() {
    let mut run = Run::with_workers(3);
    run.add_file("90-one", "1");
    run.wait(seconds(30));
    run.snapshot.nodes.remove("worker-0");
    run.finish();
    assert_eq!(run.restarts(), [1, 1]);
    run.snapshot.nodes.insert("worker-0".into(), node("worker-0", &["worker"]));
    run.finish();
    assert_eq!(run.restarts(), [0, 1, 1], "another machine of the same name");
    let pool = run.snapshot.pools.remove("worker").unwrap();
    run.add_file("90-one", "2");
    run.finish();
    assert_eq!(run.restarts(), [0, 1, 1], "without a pool nobody configures them");
    run.snapshot.pools.insert("worker".into(), pool);
    run.finish();
    assert_eq!(run.restarts(), [1, 2, 2]);
}

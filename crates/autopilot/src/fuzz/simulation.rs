//! A seeded simulation: people act, requests fail, events are late, repeated and out of order, and in the end all is as it should be.

use crate::fuzz::people;
use crate::fuzz::states::states;
use crate::status::ObjectState;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::requests::Fault;
use change::Key;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use protocol::{Command, Core as _, WatchTarget};
use server_model::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A random step waits for no timer that is farther away.
const MOST_WAITING: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3_600);
const FAULTS: [Fault; 6] = [
    Fault::Transient,
    Fault::Transient,
    Fault::Unanswered,
    Fault::Unanswered,
    Fault::Refused(403, "forbidden"),
    Fault::KeyChanged,
];

/// One step of the machinery: requests are carried out, answers and events are delivered in any order, or a timer expires.
fn step(bed: &mut TestBed, random: &mut Random) {
    let mut events = Vec::new();
    for _ in 0..=random.below(3) {
        let (requests, answers) = (bed.requests.len(), bed.answers.len());
        match random.below(requests + answers + bed.watches.len()) {
            index if index < requests => {
                let request = bed.requests.remove(index);
                carry_out(bed, random, request);
            }
            index if index < requests + answers => events.push(bed.answers.remove(index - requests)),
            _ if bed.watches.is_empty() => {}
            _ => {
                let target = any_watch(bed, random);
                events.extend(bed.next_event(&target));
            }
        }
    }
    if random.chance(20) {
        bed.run_machine_config_operator();
    }
    let now = bed.now().monotonic;
    match bed.core.wake_at() {
        Some(at) if at <= now || (at <= now.after(MOST_WAITING) && random.chance(20)) => {
            bed.set_clock(at);
            bed.handle(events);
        }
        _ if events.is_empty() => {}
        _ => bed.handle(events),
    }
}

fn carry_out(bed: &mut TestBed, random: &mut Random, request: Command<crate::Notice>) {
    if let Command::Write(write) = &request {
        if random.chance(15) {
            bed.faults.entry(write.key.clone()).or_default().push_back(random.pick(&FAULTS));
        }
    } else if random.chance(5) {
        bed.failing_reads = 1;
    }
    bed.carry_out(request);
    bed.failing_reads = 0;
}

fn any_watch(bed: &TestBed, random: &mut Random) -> WatchTarget {
    let index = random.below(bed.watches.len());
    bed.watches.keys().nth(index).expect("there is one").clone()
}

/// Something goes wrong with the process or its connections, or time passes.
fn disturb(bed: &mut TestBed, random: &mut Random) {
    match random.below(10) {
        0..=1 => {
            bed.line("the core restarts");
            // What was sent may still arrive.
            for request in std::mem::take(&mut bed.requests) {
                if matches!(request, Command::Write(_)) && random.chance(50) {
                    bed.carry_out(request);
                }
            }
            bed.restart();
        }
        2..=4 if !bed.watches.is_empty() => {
            let (target, is_reported) = (any_watch(bed, random), random.chance(50));
            bed.line(&format!("the watch of {} lists again", target.kind.kind));
            bed.watches.get_mut(&target).expect("it is open").relist(is_reported);
        }
        5..=6 if !bed.watches.is_empty() => {
            let target = any_watch(bed, random);
            bed.watches.get_mut(&target).expect("it is open").repeat();
        }
        _ => {
            let time = Duration::from_millis(random.number() % 600_000);
            bed.line(&format!("{time:?} pass"));
            bed.set_clock(bed.now().monotonic.after(time));
        }
    }
}

/// Runs one simulation to its end.
fn simulate(seed: u64, acts: usize, bed: &mut TestBed) {
    let random = &mut Random(seed);
    for _ in 0..random.below(5) {
        people::create(bed, random);
    }
    for _ in 0..acts {
        if random.chance(75) {
            people::act(bed, random);
        } else {
            disturb(bed, random);
        }
        for _ in 0..random.below(20) {
            step(bed, random);
        }
        if random.chance(20) {
            bed.run();
        }
    }
    bed.line("peace");
    bed.faults.clear();
    if random.chance(80) {
        people::restore_hco(bed);
    }
    bed.run_for(3 * HOUR);
    bed.line("silence");
    let moves = bed.moves();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.moves(), bed.core.backlog()), (moves, 0), "it does not come to rest");
    compare_with_a_new_core(bed, random);
}

/// What a new core decides to be right is so, unless the old one knows that the server refuses it: one that only observes, or one that writes.
fn compare_with_a_new_core(bed: &TestBed, random: &mut Random) {
    if bed.stored(HCO).is_none() {
        // Nobody says what is wanted.
        return;
    }
    let is_held = |key: &Key| matches!(bed.core.state(key), Some(ObjectState::Held(_)));
    if random.chance(50) {
        for (key, state) in states(bed.observe()) {
            // Whoever set a finalizer may never remove it.
            let is_settled =
                matches!(state, ObjectState::InSync | ObjectState::Held(_) | ObjectState::Gone | ObjectState::Deleting);
            assert!(is_settled || is_held(&key), "{key} is {state:?}, and {:?} before", bed.core.state(&key));
            // What both ask, they ask with the same digest.
            if let (ObjectState::Held(shown), Some(ObjectState::Held(before))) = (&state, bed.core.state(&key))
                && let (Some(shown), Some(before)) = (shown.asked(), before.asked())
            {
                assert_eq!(shown, before, "{key} is asked for with another digest");
            }
        }
        return;
    }
    let mut new = bed.fork(bed.config.clone());
    new.run_for(HOUR);
    for made in new.made.iter().filter(|made| made.has_moved() && made.write.key.name != api::STATE) {
        assert!(is_held(&made.write.key), "a new core writes: {made}");
    }
}

/// What failed and what had happened before; nothing if all went well.
pub(super) fn failure(run: impl FnOnce(&mut TestBed)) -> Option<String> {
    let mut bed = TestBed::new();
    let why = catch_unwind(AssertUnwindSafe(|| run(&mut bed))).err()?;
    let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
    Some(format!("{why}\n{}", bed.lines.concat()))
}

proptest! {
    #![proptest_config(super::seeds())]

    /// The number of acts shrinks to the shortest beginning that fails; the seed says nothing.
    #[test]
    fn a_seeded_simulation_converges_and_breaks_no_promise(seed in any::<u64>().no_shrink(), acts in super::acts()) {
        let failure = failure(|bed| {
            simulate(seed, acts, bed);
            assert!(bed.steps > 0, "the core was never called");
        });
        prop_assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    }
}

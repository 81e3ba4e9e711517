//! Seeded interleavings: people edit targets, inputs, options and approvals at any moment, requests fail, the process ends, the server is restored,
//! events are late; what is written is what was approved, nobody's edit is overwritten, and in the end all rests.

use crate::testing::bed::{Fault, HCO, TestBed};
use crate::testing::pack::{OBJECTS, PROFILE};
use protocol::{Command, Core as _};
use serde_json::{Value, json};
use server_model::random::Random;
use server_model::server::ApiServer;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const SEEDS: u64 = 1_500;
const ACTS: usize = 7;
/// Watches that are lost; the first one is every watch.
const WATCHED: [&str; 5] = ["", "HyperConverged", "HyperConverged", "MachineConfigPool", "VirtPlatformConfig"];
const HOUR: Duration = Duration::from_secs(3_600);

/// Somebody edits a target: the fields of the profile, a field of somebody else, or everything.
fn edit_target(bed: &mut TestBed, random: &mut Random) {
    let object = random.pick(&OBJECTS);
    let number = random.below(3).to_string();
    match random.below(7) {
        0 => bed.delete(object),
        // Or they say how far it is managed.
        6 => {
            let fields = json!(random.pick(&["/data/size", "/data/limit"]));
            let (key, value) = match random.below(4) {
                0 | 1 => ("mode", json!("unmanaged")),
                2 => ("ignore-fields", fields),
                _ => ("mode", Value::Null),
            };
            bed.edit(object, &json!({"metadata": {"annotations": {format!("platform.kubevirt.io/{key}"): value}}}));
        }
        _ if object == OBJECTS[0] => {
            let labels =
                json!({"machineconfiguration.openshift.io/role": random.pick(&["worker", "worker", "master"])});
            let arguments = json!([format!("psi={number}")]);
            bed.edit(object, &json!({"metadata": {"labels": labels}, "spec": {"kernelArguments": arguments}}));
        }
        1 => bed.edit(object, &json!({"data": {"theirs": number}})),
        _ => {
            let field = if object == OBJECTS[1] { "limit" } else { "size" };
            bed.edit(object, &json!({"data": {field: number}}));
        }
    }
}

fn edit_spec(bed: &mut TestBed, random: &mut Random) {
    match random.below(12) {
        0..=3 => {
            // Some wait for the plan of what they have asked for.
            if random.chance(50) {
                bed.run();
            }
            bed.approve();
        }
        4 => bed.ask(json!({"action": "Apply", "approvedPlan": null})),
        5 => bed.ask(json!({"action": random.pick(&["DryRun", "Ignore"])})),
        6 => bed.ask(json!({"action": "DryRun", "rollback": random.chance(50)})),
        7 => bed.ask(json!({"failurePolicy": random.pick(&["Abort", "Continue"])})),
        8 => bed.ask(json!({"options": {"advice": {"size": random.below(3), "nodes": random.chance(60)}}})),
        9 => bed.ask(json!({"bypassOptimisticLock": random.chance(60)})),
        10 => bed.ask(json!({"remediation": random.pick(&["Automatic", "Automatic", "Manual"])})),
        _ => bed.ask(json!({"action": "DryRun", "approvedPlan": null, "waitTimeout": "10m"})),
    }
}

/// One step of the machinery: requests are carried out, answers and events are delivered in any order, or time passes.
fn step(bed: &mut TestBed, random: &mut Random) {
    let mut events = Vec::new();
    for _ in 0..=random.below(4) {
        let (requests, answers) = (bed.requests.len(), bed.answers.len());
        match random.below(requests + answers + bed.watches.len()) {
            index if index < requests => {
                let request = bed.requests.remove(index);
                disturb(bed, random, &request);
                bed.carry_out(request);
                bed.failing_reads = 0;
            }
            index if index < requests + answers => events.push(bed.answers.remove(index - requests)),
            _ if bed.watches.is_empty() => {}
            _ => {
                let index = random.below(bed.watches.len());
                let target = bed.watches.keys().nth(index).expect("there is one").clone();
                let event = bed.watches.get_mut(&target).and_then(|watch| watch.next(&target, &bed.server));
                events.extend(event.map(|event| protocol::Event::Watched(target, event)));
            }
        }
    }
    if random.chance(30) {
        bed.run_nodes();
    }
    let soon = bed.now().monotonic.after(Duration::from_secs(20));
    if let Some(at) = bed.core.wake_at().filter(|at| *at <= soon && random.chance(30)) {
        bed.set_clock(at);
    }
    if !events.is_empty() || bed.core.wake_at().is_some_and(|at| at <= bed.now().monotonic) {
        bed.handle(events);
    }
}

fn disturb(bed: &mut TestBed, random: &mut Random, request: &Command<crate::Notice>) {
    const FAULTS: [Fault; 6] =
        [Fault::Lost, Fault::Unanswered, Fault::Refused, Fault::Stale, Fault::KilledBefore, Fault::KilledAfter];
    match request {
        Command::Write(_) => bed.faults = [random.chance(12).then(|| random.pick(&FAULTS))].into(),
        _ => bed.failing_reads = usize::from(random.chance(4)),
    }
}

/// The server is down and restored from a backup: what it has answered arrives, and what is on its way to it does not.
fn restore(bed: &mut TestBed, backup: &ApiServer) {
    let answers = std::mem::take(&mut bed.answers);
    bed.handle(answers);
    for request in std::mem::take(&mut bed.requests) {
        (bed.faults, bed.failing_reads) = ([Some(Fault::Lost)].into(), 1);
        bed.carry_out(request);
    }
    bed.faults.clear();
    bed.failing_reads = 0;
    bed.restore(backup);
}

/// Runs one simulation to its end; how many writes were checked.
fn simulate(seed: u64, bed: &mut TestBed) {
    let random = &mut Random(seed);
    if random.chance(50) {
        edit_target(bed, random);
    }
    bed.ask(json!({"action": random.pick(&["DryRun", "DryRun", "Apply"])}));
    if random.chance(80) {
        bed.run();
    }
    let mut backup = None;
    for _ in 0..ACTS {
        match random.below(16) {
            0..=3 => edit_target(bed, random),
            4 => bed.edit(HCO, &json!({"spec": {"limit": random.below(3)}})),
            5..=9 => edit_spec(bed, random),
            10 => bed.edit("MachineConfigPool worker", &json!({"spec": {"paused": random.chance(50)}})),
            11 | 12 => match backup.take() {
                None => backup = Some(bed.server.clone()),
                Some(backup) => restore(bed, &backup),
            },
            13 => bed.lose_watch(random.pick(&WATCHED)),
            14 => bed.list_again(),
            _ if random.chance(30) => bed.upgrade(),
            _ => bed.restart(),
        }
        for _ in 0..random.below(30) {
            step(bed, random);
        }
        if random.chance(30) {
            bed.faults.clear();
            bed.run_for(Duration::from_secs(random.number() % 900));
        }
    }
    bed.line("peace");
    bed.faults.clear();
    bed.list_again();
    bed.edit("MachineConfigPool worker", &json!({"spec": {"paused": false}}));
    bed.run_for(2 * HOUR);
    bed.line("silence");
    let asked = bed.asked;
    bed.run_for(HOUR);
    assert_eq!(bed.asked, asked, "it does not come to rest in phase {}", bed.phase());
    // A new process finds nothing else to do.
    let (before, phase) = (objects(bed), bed.phase());
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!((objects(bed), bed.phase()), (before, phase), "a new process comes to another end");
    expect_end(bed);
}

fn objects(bed: &TestBed) -> Vec<Value> {
    OBJECTS.iter().map(|object| bed.value(object, "")).collect()
}

/// Whether the spec lets the advisor insist on its values.
fn insists(bed: &TestBed) -> bool {
    let spec = bed.value(&format!("VirtPlatformConfig {PROFILE}"), "/spec");
    spec["bypassOptimisticLock"] == true || spec["remediation"] == "Automatic"
}

/// The phase says what is.
fn expect_end(bed: &TestBed) {
    let spec = bed.value(&format!("VirtPlatformConfig {PROFILE}"), "/spec");
    let is_rollback = spec["rollback"] == true;
    let phase = bed.phase();
    assert_eq!(phase == "Ignored", spec["action"] == "Ignore");
    let annotations = bed.value(OBJECTS[1], "/metadata/annotations");
    let is_overridden =
        ["mode", "ignore-fields"].iter().any(|key| !annotations[format!("platform.kubevirt.io/{key}")].is_null());
    if phase == "Completed" && !is_rollback && !is_overridden {
        assert_eq!(bed.value(OBJECTS[1], "/data/release"), bed.release.to_string());
        assert_eq!(bed.value(OBJECTS[1], "/data/limit").as_str().map(str::to_owned), {
            let limit = bed.value(HCO, "/spec/limit");
            Some(if limit.is_null() { "5".to_owned() } else { limit.to_string() })
        });
    }
    // A field that may have one owner as a whole cannot be ignored in part, which its item says and waits for.
    let is_held = phase == "InProgress" && bed.status()["items"].to_string().contains("ignore-fields");
    assert!(is_held || !["Pending", "Drafting", "InProgress"].contains(&phase.as_str()), "{phase}");
}

#[test]
fn edits_between_plan_and_approval_are_never_overwritten_in_a_thousand_interleavings() {
    let (mut checked, mut strict, mut insisting) = (0, 0, 0);
    let mut phases = std::collections::BTreeMap::<String, usize>::new();
    let only = option_env!("VIRTPILOT_SEED").and_then(|seed| seed.parse::<u64>().ok());
    for seed in only.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let mut bed = TestBed::new();
        let result = catch_unwind(AssertUnwindSafe(|| simulate(seed, &mut bed)));
        if let Err(why) = result {
            let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
            panic!("seed {seed}: {why}\n{}", bed.lines.concat());
        }
        checked += bed.promises.checked;
        strict += bed.promises.strict;
        insisting += usize::from(insists(&bed));
        *phases.entry(bed.phase()).or_default() += 1;
    }
    assert!(strict > 1_000 || only.is_some(), "{strict} of {checked} writes prove little; the runs end in {phases:?}");
    assert!(insisting > 100 || only.is_some(), "{insisting} runs end with a spec that insists");
    // In peace nothing stays in progress, and what failed is over.
    assert!(phases.len() >= 5 || only.is_some(), "{phases:?}");
}

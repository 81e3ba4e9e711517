//! Faults between the operator and the API server lead to the same end state as a run without faults.

use crate::advice_scenario::{self, ADVICE};
use crate::fixture::{Fixture, Scenario, assert_same, create};
use crate::life_cycle_scenario::{self, LIFE_CYCLE};
use crate::operator::annotate;
use crate::override_scenario::{self, OVERRIDES};
use kube::api::DeleteParams;
use playground::fault::{Fault, Line, Match, Plan, Rule, Verb};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The number of plans to try, unless the environment selects all of them; the test prints the seed of the choice.
const TRIED: usize = 40;
/// The variable that selects all plans.
const ALL: &str = "VIRTPILOT_ALL_FAULTS";
/// The variable with the seed of the choice.
const SEED: &str = "VIRTPILOT_FAULT_SEED";

/// One plan, with a description of the request and of the fault.
struct Case {
    what: String,
    fault: &'static str,
    plan: Plan,
}

fn status(code: u16) -> Fault {
    Fault::Status { code, retry_after: (code == 429).then_some(1) }
}

/// Faults of any request.
fn request_faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("kill before", Fault::KillBefore {}),
        ("no answer", Fault::BlindTimeout { close: false }),
        ("half an answer", Fault::Truncate {}),
        ("500", status(500)),
        ("429", status(429)),
    ]
}

fn write_faults() -> Vec<(&'static str, Fault)> {
    let mut faults = request_faults();
    faults.extend([
        ("kill after", Fault::KillAfterCommit {}),
        ("closed", Fault::BlindTimeout { close: true }),
        ("never sent", Fault::Reset {}),
        ("409", status(409)),
        ("503", status(503)),
        ("late", Fault::Delay { ms: 300 }),
    ]);
    faults
}

fn watch_faults() -> Vec<(&'static str, Fault)> {
    let first = NonZeroU64::MIN;
    vec![
        ("cut", Fault::Cut { event: Some(first) }),
        ("silent", Fault::CutSilently { event: Some(first) }),
        ("dropped", Fault::Drop { event: first }),
        ("twice", Fault::Duplicate { event: first }),
        ("gone", Fault::Gone { event: Some(first) }),
        ("410", status(410)),
    ]
}

/// The objects that were read.
fn reads(lines: &[Line]) -> BTreeSet<String> {
    lines.iter().filter(|line| line.verb == "get").map(|line| line.path.clone()).collect()
}

/// Every plan for the requests of a run without faults, and for these reads.
fn cases(lines: &[Line], reads: &BTreeSet<String>) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |what: String, verb: Verb, path: Option<&str>, nth: usize, faults: Vec<(&'static str, Fault)>| {
        for (description, fault) in faults {
            let nth = NonZeroU64::new(u64::try_from(nth).unwrap());
            let matching = Match { verb: Some(verb), path: path.map(str::to_owned), nth };
            cases.push(Case { what: what.clone(), fault: description, plan: Plan::from(Rule { matching, fault }) });
        }
    };
    let writes = lines.iter().filter(|line| is_write(line)).count();
    for nth in 1..=writes {
        add(format!("write {nth}"), Verb::Write, None, nth, write_faults());
    }
    let paths = |verb: &str| -> BTreeSet<String> {
        lines.iter().filter(|line| line.verb == verb).map(|line| line.path.clone()).collect()
    };
    for path in paths("list") {
        let mut faults = request_faults();
        faults.push(("stale", Fault::Stale {}));
        add(format!("list {path}"), Verb::List, Some(&path), 1, faults);
    }
    for path in paths("watch") {
        // What happens at the first event needs one.
        let has_events = lines.iter().any(|line| line.verb == "watch" && line.path == path && line.events > 0);
        let faults =
            watch_faults().into_iter().filter(|(_, fault)| has_events || matches!(fault, Fault::Status { .. }));
        add(format!("watch {path}"), Verb::Watch, Some(&path), 1, faults.collect());
    }
    for path in reads {
        // A match needs only a part of a path; the whole path is given.
        add(format!("get {path}"), Verb::Get, Some(path), 1, request_faults());
    }
    cases
}

fn is_write(line: &Line) -> bool {
    let depends_on_timing = ["/events", "/leases", api::STATUS].iter().any(|part| line.path.contains(part));
    matches!(line.verb, "patch" | "create" | "delete") && !line.dry_run && !depends_on_timing
}

/// The number of resource versions that the operator's writes created, per object.
fn versions(lines: &[Line]) -> BTreeMap<String, usize> {
    let made = lines.iter().filter(|line| is_write(line) && line.status.is_some_and(|status| status < 300));
    let versions: BTreeSet<(&str, &Option<String>)> =
        made.map(|line| (line.path.as_str(), &line.resource_version_out)).collect();
    let mut counts = BTreeMap::new();
    for (path, _) in versions {
        *counts.entry(path.to_owned()).or_default() += 1;
    }
    counts
}

/// Shuffles in a pseudo-random order that depends only on the seed.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(seed >> 33).unwrap() % (at + 1);
        items.swap(at, other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_the_end_state_is_the_same_with_overrides() {
    try_all(&OVERRIDES, override_scenario::run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_the_end_state_is_the_same_in_the_life_cycle() {
    try_all(&LIFE_CYCLE, life_cycle_scenario::run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_a_plan_is_applied_as_approved() {
    try_all(&ADVICE, advice_scenario::run).await;
}

/// A deletion that was decided for one object must not delete a newer object of the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_deletion_spares_a_recreated_object() {
    let fixture = Fixture::start(&LIFE_CYCLE).await;
    fixture.reset().await;
    let maps = fixture.objects("ConfigMap");
    annotate(&fixture.hco(), api::hco::NAME, "enable-extra", Some("true")).await;
    fixture.start_operator();
    fixture.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    let matching = Match { verb: Some(Verb::Delete), path: Some("life-extra".into()), nth: Some(NonZeroU64::MIN) };
    fixture.proxy.set(Plan::from(Rule { matching, fault: Fault::Delay { ms: 500 } }));
    annotate(&fixture.hco(), api::hco::NAME, "enable-extra", None).await;
    fixture.until("the deletion was sent", async || (!fixture.proxy.fired().is_empty()).then_some(())).await;
    maps.delete("life-extra", &DeleteParams::default()).await.unwrap();
    create(&maps, "life-extra", json!({"data": {"first": "theirs"}})).await;
    fixture
        .until("the server answered the deletion", async || {
            let answered = |line: &Line| line.verb == "delete" && line.status.is_some();
            fixture.proxy.requests().iter().any(answered).then_some(())
        })
        .await;
    let end = fixture.settled(None).await;
    assert_eq!(end["ConfigMap/life-extra"]["data"]["first"], "theirs");
    let refused = |line: &&Line| line.verb == "delete" && line.status == Some(409);
    assert_eq!(
        fixture.proxy.requests().iter().filter(refused).count(),
        1,
        "the server refused the deletion because of its uid"
    );
}

async fn try_all(scenario: &'static Scenario, run: impl AsyncFn(&Fixture, Option<&Value>) -> Value) {
    let fixture = Fixture::start(scenario).await;
    let fault_free = run(&fixture, None).await;
    let lines = fixture.proxy.requests();
    let (mut usual, mut reads_always) = (versions(&lines), reads(&lines));
    // Two changes that arrive together need one write, so the number of versions varies without a fault, too.
    for _ in 0..2 {
        let before = fixture.proxy.requests().len();
        assert_same(&run(&fixture, Some(&fault_free)).await, &fault_free, "second run without a fault");
        let requests = fixture.proxy.requests();
        // The verification reads what it has time for.
        reads_always = &reads_always & &reads(&requests[before..]);
        let again = versions(&requests[before..]);
        if again.values().sum::<usize>() > usual.values().sum() {
            usual = again;
        }
    }
    let most: usize = usual.values().sum();
    let mut cases = cases(&lines, &reads_always);
    let seed: u64 = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    if std::env::var(ALL).is_err() {
        shuffle(&mut cases, seed);
        cases.truncate(TRIED);
    }
    println!("{} plans ({SEED}={seed}), {most} versions without a fault", cases.len());
    let (mut table, mut unfired, mut slowest) = (BTreeMap::<(String, &str), usize>::new(), 0, Duration::ZERO);
    for case in &cases {
        let what = format!("{} of {}", case.fault, case.what);
        let before = fixture.proxy.requests().len();
        fixture.proxy.set(case.plan.clone());
        let begun = Instant::now();
        let end = with_context(run(&fixture, Some(&fault_free)), &what).await;
        slowest = slowest.max(begun.elapsed());
        assert_same(&end, &fault_free, &what);
        let fired = !fixture.proxy.fired().is_empty();
        fixture.proxy.clear();
        let versions = versions(&fixture.proxy.requests()[before..]);
        let made: usize = versions.values().sum();
        assert!(
            made <= most + 1,
            "{what}: {made} versions were created instead of {most}: {versions:#?} instead of {usual:#?}"
        );
        println!(
            "{what}: {made} versions, {} ms{}",
            begun.elapsed().as_millis(),
            if fired { "" } else { ", the fault was not injected" }
        );
        unfired += usize::from(!fired);
        let kind = case.what.split_whitespace().next().unwrap_or_default().to_owned();
        *table.entry((kind, case.fault)).or_default() += usize::from(fired);
    }
    for ((what, fault), count) in &table {
        println!("{what:<6} {fault:<15} {count}");
    }
    println!("the slowest case took {} ms; {unfired} faults were not injected", slowest.as_millis());
    // The last writes of a scenario depend on timing; a plan for a write that was not sent proves nothing.
    assert!(unfired * 10 <= cases.len(), "{unfired} of {} faults were not injected", cases.len());
}

/// Prints which case was running if it panics.
async fn with_context(run: impl Future<Output = Value>, what: &str) -> Value {
    let run = std::panic::AssertUnwindSafe(run);
    match futures::FutureExt::catch_unwind(run).await {
        Ok(end) => end,
        Err(panic) => {
            eprintln!("while {what}");
            std::panic::resume_unwind(panic)
        }
    }
}

//! Whatever goes wrong between the operator and the server, the play ends as if nothing had.

use crate::life::{self, LIFE};
use crate::operator::annotate;
use crate::scene::{self, SCENE};
use crate::stage::{Play, Stage, assert_same, create};
use kube::api::DeleteParams;
use playground::fault::{Fault, Line, Match, Plan, Rule, Verb};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// How many of all plans are tried, unless the environment asks for all: chosen by a number that the test prints.
const TRIED: usize = 40;
/// Asks for all plans, with a table at the end.
const ALL: &str = "VIRTPILOT_ALL_FAULTS";
/// Another choice.
const SEED: &str = "VIRTPILOT_FAULT_SEED";

/// One plan: a word for the kind of request, a word for the fault.
struct Case {
    what: String,
    fault: &'static str,
    plan: Plan,
}

fn status(code: u16) -> Fault {
    Fault::Status { code, retry_after: (code == 429).then_some(1) }
}

/// What can go wrong with a request that is answered.
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

/// Every plan for the requests of a run without faults.
fn cases(lines: &[Line]) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |what: String, verb: Verb, path: Option<&str>, nth: usize, faults: Vec<(&'static str, Fault)>| {
        for (word, fault) in faults {
            let nth = NonZeroU64::new(u64::try_from(nth).unwrap());
            let matching = Match { verb: Some(verb), path: path.map(str::to_owned), nth };
            cases.push(Case { what: what.clone(), fault: word, plan: Plan::from(Rule { matching, fault }) });
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
        add(format!("watch {path}"), Verb::Watch, Some(&path), 1, watch_faults());
    }
    for path in paths("get") {
        // Part of a path is enough for a match; the whole one is meant.
        add(format!("get {path}"), Verb::Get, Some(&path), 1, request_faults());
    }
    cases
}

fn is_write(line: &Line) -> bool {
    let is_small_talk = line.path.ends_with("/events") || line.path.contains("/leases");
    matches!(line.verb, "patch" | "create" | "delete") && !is_small_talk
}

/// How many versions the operator's writes made, object by object.
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

/// Numbers that look like chance and are the same every time.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(seed >> 33).unwrap() % (at + 1);
        items.swap(at, other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_the_end_is_the_same_for_what_users_override() {
    try_all(&SCENE, scene::play).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_goes_wrong_the_end_is_the_same_for_what_comes_and_goes() {
    try_all(&LIFE, life::play).await;
}

/// A deletion that was decided about one object must not hit another that took its name meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_deletion_spares_whatever_was_made_anew() {
    let stage = Stage::build(&LIFE).await;
    stage.clear().await;
    let maps = stage.objects("ConfigMap");
    annotate(&stage.hco(), api::hco::NAME, "enable-extra", Some("true")).await;
    stage.start();
    stage.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    let matching = Match { verb: Some(Verb::Delete), path: Some("life-extra".into()), nth: Some(NonZeroU64::MIN) };
    stage.proxy.set(Plan::from(Rule { matching, fault: Fault::Delay { ms: 500 } }));
    annotate(&stage.hco(), api::hco::NAME, "enable-extra", None).await;
    stage.until("the deletion is under way", async || (!stage.proxy.fired().is_empty()).then_some(())).await;
    maps.delete("life-extra", &DeleteParams::default()).await.unwrap();
    create(&maps, "life-extra", json!({"data": {"first": "theirs"}})).await;
    stage
        .until("the deletion was answered", async || {
            let answered = |line: &Line| line.verb == "delete" && line.status.is_some();
            stage.proxy.requests().iter().any(answered).then_some(())
        })
        .await;
    let end = stage.settled(None).await;
    assert_eq!(end["ConfigMap/life-extra"]["data"]["first"], "theirs");
    let refused = |line: &&Line| line.verb == "delete" && line.status == Some(409);
    assert_eq!(stage.proxy.requests().iter().filter(refused).count(), 1, "the server refused it for its identity");
}

async fn try_all(what: &'static Play, play: impl AsyncFn(&Stage, Option<&Value>) -> Value) {
    let stage = Stage::build(what).await;
    let fault_free = play(&stage, None).await;
    let lines = stage.proxy.requests();
    let (mut cases, mut usual) = (cases(&lines), versions(&lines));
    // Two changes that come together need one write, so without a fault it takes now more, now less.
    for _ in 0..2 {
        let before = stage.proxy.requests().len();
        assert_same(&play(&stage, Some(&fault_free)).await, &fault_free, "played again");
        let again = versions(&stage.proxy.requests()[before..]);
        if again.values().sum::<usize>() > usual.values().sum() {
            usual = again;
        }
    }
    let most: usize = usual.values().sum();
    let seed: u64 = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    if std::env::var(ALL).is_err() {
        shuffle(&mut cases, seed);
        cases.truncate(TRIED);
    }
    println!("{} plans ({SEED}={seed}), {most} versions without a fault", cases.len());
    let (mut table, mut unfired, mut slowest) = (BTreeMap::<(String, &str), usize>::new(), 0, Duration::ZERO);
    for case in &cases {
        let what = format!("{} of {}", case.fault, case.what);
        let before = stage.proxy.requests().len();
        stage.proxy.set(case.plan.clone());
        let begun = Instant::now();
        let end = watched(play(&stage, Some(&fault_free)), &what).await;
        slowest = slowest.max(begun.elapsed());
        assert_same(&end, &fault_free, &what);
        let fired = !stage.proxy.fired().is_empty();
        stage.proxy.clear();
        let versions = versions(&stage.proxy.requests()[before..]);
        let made: usize = versions.values().sum();
        assert!(
            made <= most + 1,
            "{what}: {made} versions were made instead of {most}: {versions:#?} instead of {usual:#?}"
        );
        println!(
            "{what}: {made} versions, {} ms{}",
            begun.elapsed().as_millis(),
            if fired { "" } else { ", did not happen" }
        );
        unfired += usize::from(!fired);
        let kind = case.what.split_whitespace().next().unwrap_or_default().to_owned();
        *table.entry((kind, case.fault)).or_default() += usize::from(fired);
    }
    for ((what, fault), count) in &table {
        println!("{what:<6} {fault:<15} {count}");
    }
    println!("the slowest took {} ms; {unfired} did not happen", slowest.as_millis());
    // The last writes of a play depend a little on who is faster; a plan for one that was not made proves nothing.
    assert!(unfired * 10 <= cases.len(), "{unfired} of {} faults did not happen", cases.len());
}

/// Says what was tried, should it fail.
async fn watched(play: impl Future<Output = Value>, what: &str) -> Value {
    let played = std::panic::AssertUnwindSafe(play);
    match futures::FutureExt::catch_unwind(played).await {
        Ok(end) => end,
        Err(panic) => {
            eprintln!("while {what}");
            std::panic::resume_unwind(panic)
        }
    }
}

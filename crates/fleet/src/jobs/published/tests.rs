//! Tests of the published queue: what it says, its size, and that it is written only when there is something new.

use super::{
    Extras, Filter, MOST, MOST_BYTES, Operator, Question, Report, Tale, find, is_news, pause_after, read, report, rows,
    span, tale,
};
use crate::jobs::demand::tests::{job as facts, pool};
use crate::jobs::demand::{Scope, Wait};
use crate::jobs::dispatch::Dispatch;
use crate::jobs::exchange::{Decision, Event, Objects, Removal};
use crate::jobs::fair::{Rules, Share};
use crate::jobs::job::{JobKey, Observation, Source, State};
use crate::jobs::runners::{Claim, Machine, RunnerRecord, runner_name};
use crate::object::Name;
use change::{Moment, Now};
use expect_test::expect;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

fn now(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

/// A job as a test names it.
struct Seen<'a> {
    id: u64,
    repository: &'a str,
    name: &'a str,
    labels: &'a [&'a str],
    state: State,
    runner: Option<&'a str>,
}

const WAITS: Seen<'_> = Seen {
    id: 7,
    repository: "acme/web",
    name: "build",
    labels: &["linux", "x64"],
    state: State::Queued,
    runner: None,
};

/// A fleet with two pools and the machine ci/linux-7f2k.
struct Bed {
    dispatch: Dispatch,
    claims: Vec<Claim>,
    rules: Rules,
}

impl Bed {
    fn new() -> Bed {
        let mut dispatch = Dispatch::new("operator");
        let limits = Event::Limits { owner: "acme".into(), limit: 5_000, remaining: 5_000, reset: now(3_600).wall };
        dispatch.take(limits, now(0));
        Bed { dispatch, claims: Vec::new(), rules: Rules::default() }
    }

    fn see(&mut self, second: u64, seen: &Seen<'_>) {
        self.see_as(
            second,
            seen,
            JobKey::Job { id: seen.id, attempt: if seen.id == 8 { 2 } else { 1 } },
            Source::Webhook,
        );
    }

    fn see_as(&mut self, second: u64, seen: &Seen<'_>, key: JobKey, source: Source) {
        let mut facts = facts(seen.id, seen.repository, seen.labels);
        (facts.key, facts.name, facts.run) = (key, seen.name.into(), 5);
        (facts.state, facts.runner) = (seen.state, seen.runner.map(str::to_owned));
        facts.created = Some(now(0).wall);
        facts.started = (seen.state >= State::InProgress).then(|| now(second).wall);
        facts.completed = (seen.state == State::Completed).then(|| now(second).wall);
        facts.conclusion = (seen.state == State::Completed).then(|| "success".into());
        let observation = Observation { source, at: now(second).wall, facts };
        self.dispatch.take(Event::Observed(Box::new(observation)), now(second));
    }

    fn boot(&mut self, second: u64) {
        let (name, pool) = (Name::new("ci", "linux-7f2k"), Name::new("ci", "linux"));
        self.claims = vec![Claim::starting(name, pool, now(second).wall)];
    }

    fn decide(&mut self, second: u64) -> Report {
        self.decide_with(second, |_| {})
    }

    fn decide_with(&mut self, second: u64, change: impl FnOnce(&mut [crate::jobs::demand::Pool])) -> Report {
        let mut pools = [pool("linux", &["self-hosted", "linux", "x64"]), pool("gpu", &["self-hosted", "gpu-a100"])];
        change(&mut pools);
        let objects = Objects { pools: &pools, claims: &self.claims, is_complete: true, rules: &self.rules };
        let decision: Decision = self.dispatch.decide(objects, now(second));
        let usual = BTreeMap::from([(Name::new("ci", "linux"), Duration::from_secs(20))]);
        let extras = Extras { usual_starts: Some(&usual), ..Extras::default() };
        report(&operator(), &self.dispatch, objects, &decision, extras)
    }
}

fn operator() -> Operator {
    Operator { pod: "fleet-0".into(), version: "0.2.0".into(), started: now(0).wall }
}

fn shown(report: &Report, filter: &Filter, second: u64) -> String {
    let nearest =
        |label: &str, all: &[&str]| all.iter().find(|name| name.starts_with(label)).map(|&name| name.to_owned());
    let rows = rows(report, filter, now(second).wall, nearest);
    let line =
        |row: &super::Row| format!("{} | {} | {} | {}", row.job(), row.labels.join(","), span(row.seconds), row.why);
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn text(tale: &Tale) -> String {
    let mut lines =
        vec![tale.job.clone(), tale.state.clone(), format!("Next: {}", tale.next.as_deref().unwrap_or("-"))];
    lines.extend(tale.facts.iter().map(|(name, value)| format!("  {name}: {value}")));
    lines.extend(
        tale.steps
            .iter()
            .map(|step| format!("{} {} {}", step.at, step.seconds.map(span).unwrap_or_default(), step.what)),
    );
    lines.join("\n")
}

#[test]
fn the_queue_says_in_a_few_words_why_each_job_waits() {
    let mut bed = Bed::new();
    bed.rules
        .repositories
        .insert(crate::jobs::Repository::new("acme", "api"), Share { quota: Some(0), ..Share::default() });
    bed.see(1, &Seen { id: 8, name: "test", ..WAITS });
    bed.see(2, &Seen { id: 9, labels: &["linux", "gpu"], ..WAITS });
    bed.see(3, &Seen { id: 10, repository: "acme/api", name: "lint", ..WAITS });
    bed.see(4, &Seen { id: 11, state: State::InProgress, runner: Some("theirs"), ..WAITS });
    bed.see(5, &Seen { id: 12, state: State::Waiting, name: "deploy", ..WAITS });
    bed.see(5, &Seen { id: 13, ..WAITS });
    bed.boot(2);
    let report = bed.decide(6);
    expect![[r#"
        acme/web #8 test (2nd try) | linux,x64 | 14s | machine linux-7f2k is booting (12s of about 20s)
        acme/web #9 build | gpu,linux | 14s | no pool has label gpu; nearest: gpu-a100
        acme/api #10 lint | linux,x64 | 14s | quota of acme/api is 0, all busy
        acme/web #13 build | linux,x64 | 14s | a machine of pool linux is being created
        acme/web #12 deploy | linux,x64 | 14s | waits on GitHub: an approval or a concurrency group"#]]
    .assert_eq(&shown(&report, &Filter::default(), 14));
    expect![[r#"
        acme/web #8 test (2nd try) | linux,x64 | 14s | machine linux-7f2k is booting (12s of about 20s)
        acme/web #9 build | gpu,linux | 14s | no pool has label gpu; nearest: gpu-a100
        acme/web #13 build | linux,x64 | 14s | a machine of pool linux is being created
        acme/web #12 deploy | linux,x64 | 14s | waits on GitHub: an approval or a concurrency group
        acme/web #11 build | linux,x64 | 10s | runs on theirs"#]]
    .assert_eq(&shown(&report, &Filter { is_all: true, repository: Some("Acme/web".into()), pool: None }, 14));
    let of_pool = |pool: &str| Filter { is_all: true, pool: Some(pool.into()), repository: None };
    expect![[r#"
        acme/web #8 test (2nd try) | linux,x64 | 14s | machine linux-7f2k is booting (12s of about 20s)
        acme/web #13 build | linux,x64 | 14s | a machine of pool linux is being created"#]]
    .assert_eq(&shown(&report, &of_pool("linux"), 14));
    assert_eq!(shown(&report, &of_pool("linux"), 14), shown(&report, &of_pool("ci/linux"), 14));
    assert_eq!(shown(&report, &of_pool("gpu"), 14), "");
    let other = Filter { repository: Some("other".into()), ..Filter::default() };
    assert_eq!(shown(&report, &other, 14), "");
    let owner = Filter { repository: Some("acme".into()), ..Filter::default() };
    assert_eq!(shown(&report, &owner, 14), shown(&report, &Filter::default(), 14));
}

#[test]
fn a_job_has_a_story_from_its_first_report_to_the_end_of_its_machine() {
    let mut bed = Bed::new();
    bed.see(2, &WAITS);
    bed.decide(3);
    bed.boot(4);
    let report = bed.decide(10);
    let of = |report: &Report, second: u64| {
        let found = find(report, &Question::Job(7));
        assert_eq!(found.len(), 1);
        text(&tale(found[0], report, now(second).wall))
    };
    expect![[r#"
        acme/web #7 build
        queued for 14s: machine ci/linux-7f2k has been booting for 10 s
        Next: virtpilot fleet explain linux-7f2k --namespace ci
          labels: linux, x64
          run: 5 of acme/web
          pool: ci/linux: 0 busy, 0 idle, 1 starting, at most 10; 1 job waits for it
          created: 2027-01-15T08:00:00Z on GitHub
          seen: 2027-01-15T08:00:02Z by a webhook, 2s after its creation
        2027-01-15T08:00:02Z 1s it is queued, as a webhook says
        2027-01-15T08:00:03Z 7s a machine of pool ci/linux is being created
        2027-01-15T08:00:10Z 4s machine ci/linux-7f2k has been booting for 6 s"#]]
    .assert_eq(&of(&report, 14));
    let runner = runner_name("operator", &Name::new("ci", "linux-7f2k"), "u");
    bed.see(40, &Seen { state: State::InProgress, runner: Some(&runner), ..WAITS });
    bed.claims[0].machine = Machine::Running;
    let (registered_time, delivered_time) = (now(20).wall, Some(now(21).wall));
    let name = runner.clone();
    bed.claims[0].runner =
        Some(RunnerRecord { id: 9, name, scale_set: None, scope: None, registered_time, delivered_time });
    let report = bed.decide(41);
    assert!(of(&report, 50).lines().nth(1).unwrap().ends_with("in progress for 10s on machine ci/linux-7f2k"));
    bed.see(100, &Seen { state: State::Completed, runner: Some(&runner), ..WAITS });
    bed.claims[0].machine = Machine::Ended;
    bed.decide(101);
    let scope = Scope { owner: "acme".into(), repository: None };
    let claim = Some(bed.claims[0].name.clone());
    bed.dispatch.take(Event::Removed { scope, id: 9, claim, answer: Removal::Removed }, now(102));
    bed.decide(103);
    bed.claims.clear();
    let report = bed.decide(110);
    expect![[r#"
        acme/web #7 build
        completed: success, 30s ago
        Next: -
          labels: linux, x64
          run: 5 of acme/web
          pool: ci/linux: 0 busy, 0 idle, 0 starting, at most 10; 0 jobs wait for it
          machine: ci/linux-7f2k
          runner: vp-06e55b63-linux-7f2k-0bfe935e70
          created: 2027-01-15T08:00:00Z on GitHub
          seen: 2027-01-15T08:00:02Z by a webhook, 2s after its creation
          started: 2027-01-15T08:00:40Z, after 40s
          ended: 2027-01-15T08:01:40Z, after 1m00s
          result: success
        2027-01-15T08:00:02Z 1s it is queued, as a webhook says
        2027-01-15T08:00:03Z 7s a machine of pool ci/linux is being created
        2027-01-15T08:00:10Z 30s machine ci/linux-7f2k has been booting for 6 s
        2027-01-15T08:00:40Z 1s runner vp-06e55b63-linux-7f2k-0bfe935e70 has started it, as a webhook says
        2027-01-15T08:00:41Z 59s its runner is on machine ci/linux-7f2k of pool ci/linux
        2027-01-15T08:01:40Z 3s it is completed, as a webhook says
        2027-01-15T08:01:43Z  its machine is ended: its job is done"#]]
    .assert_eq(&of(&report, 130));
}

#[test]
fn a_person_is_told_what_to_do_next() {
    let next = |labels: &[&str], change: &dyn Fn(&mut [crate::jobs::demand::Pool])| {
        let mut bed = Bed::new();
        bed.see(1, &Seen { labels, ..WAITS });
        let report = bed.decide_with(2, change);
        tale(&report.jobs[0], &report, now(3).wall).next.unwrap_or_default()
    };
    let lines = [
        next(&["linux", "gpu"], &|_| {}),
        next(&["linux"], &|pools| pools[0].is_paused = true),
        next(&["linux"], &|pools| pools[0].scaling.max_replicas = 0),
        next(&["linux"], &|pools| pools[0].room = Some(0)),
        next(&["linux"], &|pools| pools[0].scale_set = Some(3)),
        next(&["linux"], &|_| {}),
        next(&["self-hosted"], &|pools| pools.iter_mut().for_each(|pool| pool.scope.owner = "other".into())),
    ];
    expect![[r#"
        correct runs-on of the job, or add the label gpu to a pool: kubectl edit runnerpool linux --namespace ci
        resume the pool: kubectl edit runnerpool linux --namespace ci
        wait until a job ends, or let the pool have more machines: kubectl patch runnerpool linux --namespace ci --type merge --patch '{"spec":{"scaling":{"maxReplicas":1}}}'
        wait until a machine ends, or make room: virtpilot fleet explain pool/linux --namespace ci
        check on GitHub that the runner group of the scale set serves acme/web, and that its labels are those of the job
        virtpilot fleet explain pool/linux --namespace ci
        create a RunnerPool for acme/web: docs/github-runners.md"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn a_job_that_the_scale_set_names_differently_is_shown_once() {
    let mut bed = Bed::new();
    let of_set = |pools: &mut [crate::jobs::demand::Pool]| pools[0].scale_set = Some(3);
    bed.see(1, &WAITS);
    let report = bed.decide_with(2, of_set);
    assert_eq!(report.jobs[0].wait.as_ref().map(Wait::reason), Some("NotAssigned"));
    bed.see_as(3, &WAITS, JobKey::Request { scale_set: 3, id: 70 }, Source::ScaleSet);
    let report = bed.decide_with(4, of_set);
    let line = &report.jobs[0];
    assert_eq!((report.jobs.len(), report.total.waiting, line.key), (1, 1, JobKey::Job { id: 7, attempt: 1 }));
    assert_eq!(line.wait.as_ref().map(Wait::reason), Some("Creating"), "it is assigned");
    let objects = Objects { pools: &[], claims: &[], is_complete: true, rules: &bed.rules };
    let waiting = crate::jobs::figures::figures(&bed.dispatch, objects, &Decision::default()).waiting;
    assert_eq!(waiting.into_keys().collect::<Vec<_>>(), ["Creating"], "and counted once");
    bed.see_as(5, &Seen { name: "other", ..WAITS }, JobKey::Request { scale_set: 3, id: 71 }, Source::ScaleSet);
    let report = bed.decide_with(6, of_set);
    assert_eq!(report.jobs.len(), 2);
    assert_eq!(find(&report, &Question::Request { scale_set: 3, id: 71 }).len(), 1);
    let of_run = read("https://github.com/acme/web/actions/runs/5").unwrap();
    assert_eq!(find(&report, &of_run).len(), 2);
}

#[test]
fn the_document_is_bounded_whatever_jobs_are_called() {
    let mut bed = Bed::new();
    let long = "x".repeat(5_000);
    let labels: Vec<String> = (0..100).map(|number| format!("{number}-{long}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).chain(["linux"]).collect();
    for id in 100..200 {
        bed.see(1, &Seen { id, name: &long, labels: &labels, ..WAITS });
    }
    let report = bed.decide(2);
    let bytes = serde_json::to_string(&report).unwrap().len();
    assert!(bytes < MOST_BYTES + 20_000 && report.jobs.len() > 10, "{bytes} bytes of {} jobs", report.jobs.len());
    assert_eq!(report.total.waiting, 100, "what is left out is counted");

    let mut bed = Bed::new();
    for id in 1_000..2_000 {
        let state = [State::Queued, State::InProgress, State::Completed][usize::try_from(id % 3).unwrap()];
        bed.see(id, &Seen { id, state, ..WAITS });
    }
    let report = bed.decide(2_000);
    let count = |state: State| report.jobs.iter().filter(|line| line.state == state).count();
    assert_eq!((count(State::Queued), count(State::InProgress)), (200, 100));
    assert_eq!((report.jobs.len(), report.total.ended), (MOST, 333));
    assert_eq!(serde_json::from_str::<Report>(&serde_json::to_string(&report).unwrap()).unwrap(), report);
    assert_eq!(pause_after(0).as_secs(), 5);
    assert_eq!(pause_after(MOST_BYTES).as_secs(), 11, "a large document is written less often");
}

#[test]
fn time_that_passes_and_jobs_that_are_forgotten_are_no_news() {
    let mut bed = Bed::new();
    bed.see(1, &WAITS);
    bed.see(1, &Seen { id: 9, state: State::Completed, ..WAITS });
    let first = bed.decide(2);
    assert_eq!(bed.decide(60), first, "nothing in it is a time span");
    let later = bed.decide(3_700);
    assert_eq!((first.jobs.len(), later.jobs.len()), (2, 1));
    assert!(!is_news(&first, &later), "the job that ended was forgotten");
    bed.see(3_701, &Seen { id: 10, ..WAITS });
    assert!(is_news(&later, &bed.decide(3_702)));
    let before = bed.decide(3_703);
    bed.see(3_704, &Seen { state: State::Completed, ..WAITS });
    assert!(is_news(&before, &bed.decide(3_705)));
    let another = Report { operator: Operator { pod: "fleet-1".into(), ..operator() }, ..before.clone() };
    assert!(is_news(&before, &another) && !is_news(&before, &before));
}

//! Every way a guest ends: the power is switched off, and the operator knows the reason if it can be reached.

use crate::scene::{JOB, JOB_DONE, Plan, Scene, claim, refusal};
use bootstrap::{END_PATH, EXCHANGE_PATH, EndReason, Limits, Phase, REPORT_PATH, Step};
use rustix::process::{Pid, Signal, kill_process};

const SHORT: u64 = 2;

/// Runs a plan to its end, which has this reason, and leaves no secret.
fn ends(plan: &Plan, reason: EndReason, step: Step) -> bootstrap::End {
    let ended = Scene::start(plan).ended();
    let end = ended.end();
    assert_eq!((end.reason, end.step), (reason, step), "{end:?}\n{}", ended.output);
    ended.has_no_secret();
    end
}

/// Runs a plan to an end that cannot be reported, and returns what was written.
fn ends_alone(plan: &Plan) -> String {
    let ended = Scene::start(plan).ended();
    assert_eq!((ended.power_offs, ended.scene.heard().ends.len()), (1, 0), "{}", ended.output);
    ended.has_no_secret();
    ended.output
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Plan::default().limits;
    change(&mut limits);
    limits
}

#[test]
fn a_job_is_run_and_every_phase_is_reported() {
    let script = format!("{JOB}while [ ! -e go ]; do sleep 0.05; done\n{JOB_DONE}");
    let scene = Scene::start(&Plan { script, ..Plan::default() });
    let has = |phase| move |scene: &Scene| scene.heard().reports.iter().any(|report| report.phase == phase);
    scene.until("a report of the job", has(Phase::Running));
    let count = scene.heard().reports.len();
    scene.until("two more heartbeats", |scene| scene.heard().reports.len() >= count + 2);
    std::fs::write(scene.runner().join("go"), "").unwrap();
    let ended = scene.ended();
    let end = ended.end();
    assert_eq!((end.reason, end.step, end.ran_job), (EndReason::JobCompleted, Step::Job, true), "{end:?}");
    assert_eq!((end.exit_code, end.log.as_str()), (Some(0), ""));
    let heard = ended.scene.heard();
    assert_eq!(heard.reports[0].phase, Phase::Preparing);
    assert!(heard.reports.iter().all(|report| report.claim == claim()));
    assert!(!heard.downloads.contains("Authorization"), "{}", heard.downloads);
    assert_eq!(heard.exchanges.len(), 1);
    drop(heard);
    ended.has_no_secret();
}

#[test]
fn a_job_that_fails_is_a_job_that_was_done() {
    let script = format!("{JOB}echo '2026-11-18 16:00:09Z: Job build completed with result: Failed'\nexit 0\n");
    ends(&Plan { script, ..Plan::default() }, EndReason::JobCompleted, Step::Job);
}

#[test]
fn a_runner_that_exits_is_reported_with_the_end_of_its_output_without_secrets() {
    let script = "cat .credentials .credentials_rsaparams; echo Authorization: Bearer ghs_0123456789abcdef; echo reason >&2; exit 3\n";
    let end = ends(&Plan { script: script.to_owned(), ..Plan::default() }, EndReason::RunnerExited, Step::Idle);
    assert_eq!((end.exit_code, end.ran_job), (Some(3), false));
    assert!(end.log.contains("reason\n") && end.log.contains("***") && !end.log.contains("ghs_"), "{}", end.log);
    assert!(end.message.contains("with code 3 before it had a job"), "{}", end.message);

    let script = format!("{JOB}exit 4\n");
    let end = ends(&Plan { script, ..Plan::default() }, EndReason::RunnerExited, Step::Job);
    assert_eq!((end.exit_code, end.ran_job), (Some(4), true));
    // A version that GitHub refuses.
    ends(&Plan { script: "exit 7\n".to_owned(), ..Plan::default() }, EndReason::RunnerDeprecated, Step::Idle);
}

#[test]
fn limits_of_time_end_it_also_if_the_runner_does_not_stop() {
    let hang = "trap '' TERM INT HUP\n(trap '' TERM INT HUP; sleep 300) &\n".to_owned();
    let waits = format!("{hang}while :; do sleep 0.2; done\n");
    let job = format!("{hang}{JOB}while :; do sleep 0.2; done\n");
    let idle = limits(|limits| limits.idle_seconds = SHORT);
    ends(&Plan { script: waits.clone(), limits: idle, ..Plan::default() }, EndReason::IdleLimit, Step::Idle);
    let long = limits(|limits| limits.job_seconds = SHORT);
    let end = ends(&Plan { script: job.clone(), limits: long, ..Plan::default() }, EndReason::JobLimit, Step::Job);
    assert!(end.ran_job && end.message.contains("limits.jobSeconds"), "{end:?}");
    let old = limits(|limits| limits.lifetime_seconds = SHORT + 1);
    ends(&Plan { script: job, limits: old, ..Plan::default() }, EndReason::LifetimeLimit, Step::Job);
    let plan = Plan { script: waits, credentials_expire_seconds: SHORT, ..Plan::default() };
    ends(&plan, EndReason::CredentialsExpired, Step::Idle);
}

#[test]
fn an_operator_that_is_silent_ends_an_idle_runner_and_no_job() {
    let limits = limits(|limits| {
        limits.silence_seconds = SHORT;
        limits.end_seconds = 5;
    });
    let down = vec![(500, String::new(), Vec::new())];
    let answers = vec![(REPORT_PATH, down.clone()), (END_PATH, down)];
    let plan = Plan { script: "sleep 300\n".to_owned(), limits, answers: answers.clone(), ..Plan::default() };
    let ended = Scene::start(&plan).ended();
    assert_eq!(ended.power_offs, 1);
    let heard = ended.scene.heard();
    assert!(
        heard.ends.len() > 1 && heard.ends.iter().all(|end| end.reason == EndReason::OperatorSilent),
        "{:?}",
        heard.ends
    );
    drop(heard);
    ended.has_no_secret();

    let script = format!("{JOB}sleep 4\n{JOB_DONE}");
    let ended = Scene::start(&Plan { script, limits, answers, ..Plan::default() }).ended();
    assert!(ended.scene.heard().ends.iter().all(|end| end.reason == EndReason::JobCompleted));
}

#[test]
fn an_operator_can_ask_an_idle_runner_to_end() {
    let stop =
        vec![(200, String::new(), b"{\"stop\": false}".to_vec()), (200, String::new(), b"{\"stop\": true}".to_vec())];
    let plan = Plan { script: "sleep 300\n".to_owned(), answers: vec![(REPORT_PATH, stop)], ..Plan::default() };
    let ended = Scene::start(&plan).ended();
    assert_eq!(ended.end().reason, EndReason::Drained);
}

#[test]
fn without_network_or_trust_it_gives_up_when_its_time_is_over() {
    let limits = limits(|limits| limits.exchange_seconds = SHORT);
    let config = |config: &mut bootstrap::Config| "https://127.0.0.1:1".clone_into(&mut config.operator);
    let output = ends_alone(&Plan { limits, config, ..Plan::default() });
    assert!(output.contains("cannot be reached"), "{output}");

    // The certificate of another authority, although that one has the same name.
    let config = |config: &mut bootstrap::Config| {
        config.ca = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap().cert.pem();
    };
    let output = ends_alone(&Plan { limits, config, ..Plan::default() });
    assert!(output.contains("certificate"), "{output}");
    // The name of another server.
    let config = |config: &mut bootstrap::Config| config.operator = config.operator.replace("127.0.0.1", "localhost");
    let output = ends_alone(&Plan { limits, config, ..Plan::default() });
    assert!(output.contains("certificate"), "{output}");

    let answers = vec![(EXCHANGE_PATH, refusal(503, "NotYet"))];
    let output = ends_alone(&Plan { limits, answers, ..Plan::default() });
    assert!(output.contains("no credentials yet"), "{output}");
}

#[test]
fn a_refused_token_is_not_presented_again() {
    for reason in ["Used", "Expired", "Unknown", "SomethingNew"] {
        let plan = Plan { answers: vec![(EXCHANGE_PATH, refusal(403, reason))], ..Plan::default() };
        let ended = Scene::start(&plan).ended();
        assert_eq!((ended.power_offs, ended.scene.heard().exchanges.len()), (1, 1), "{reason}");
        assert!(ended.output.contains("because of the test"), "{}", ended.output);
        ended.has_no_secret();
    }
}

#[test]
fn credentials_that_are_late_are_asked_for_again_with_the_same_nonce() {
    let mut answers = refusal(503, "NotYet");
    answers.push((200, String::new(), b"{}".to_vec()));
    let ended = Scene::start(&Plan { answers: vec![(EXCHANGE_PATH, answers)], ..Plan::default() }).ended();
    let heard = ended.scene.heard();
    assert_eq!(heard.exchanges.len(), 2);
    assert_eq!(heard.exchanges[0], heard.exchanges[1]);
    drop(heard);
    // An answer of another version is none.
    assert!(ended.output.contains("operator's version"), "{}", ended.output);
}

#[test]
fn an_archive_that_is_missing_wrong_or_leaves_its_folder_is_never_run() {
    let script = "echo was run".to_owned();
    let plan = || Plan { script: script.clone(), ..Plan::default() };
    let missing = Plan { answers: vec![("/archive", vec![(404, String::new(), Vec::new())])], ..plan() };
    let end = ends(&missing, EndReason::StepFailed, Step::Download);
    assert!(end.message.contains("404"), "{end:?}");
    let endless =
        Plan { answers: vec![("/archive", vec![(302, "Location: /first\r\n".to_owned(), Vec::new())])], ..plan() };
    ends(&endless, EndReason::StepFailed, Step::Download);
    let wrong = Plan { sha256: Some("0".repeat(64)), ..plan() };
    let end = ends(&wrong, EndReason::StepFailed, Step::Verify);
    assert!(end.message.contains("SHA-256"), "{end:?}");
    for link in [("./a", "/etc"), ("./a", "../../x"), ("./a/b", "c/../../..")] {
        let end = ends(&Plan { link: Some(link), ..plan() }, EndReason::StepFailed, Step::Unpack);
        assert!(end.message.contains("leaves the folder") && end.log.is_empty(), "{end:?}");
    }
}

#[test]
fn credentials_that_cannot_be_placed_and_a_runner_that_is_none_end_it() {
    let plan = Plan { arguments: vec!["--memory", "/proc/virtpilot/secrets"], ..Plan::default() };
    let end = ends(&plan, EndReason::StepFailed, Step::Credentials);
    assert!(end.message.contains("could not write /proc/virtpilot/secrets") && !end.ran_job, "{end:?}");
    let end = ends(&Plan { program: "./run", ..Plan::default() }, EndReason::StepFailed, Step::Start);
    assert!(end.message.contains("run.sh is no program") && !end.ran_job, "{end:?}");
}

#[test]
fn a_download_that_fails_is_tried_again() {
    let answers = vec![(502, String::new(), Vec::new()), (302, "Location: /archive\r\n".to_owned(), Vec::new())];
    ends(&Plan { answers: vec![("/first", answers)], ..Plan::default() }, EndReason::JobCompleted, Step::Job);
}

#[test]
fn a_user_that_is_missing_ends_it() {
    let plan = Plan { user: Some("nobody-has-this-name".to_owned()), ..Plan::default() };
    let end = ends(&plan, EndReason::StepFailed, Step::Unpack);
    assert!(end.message.contains("create it"), "{end:?}");
}

#[test]
fn a_wrong_configuration_or_argument_ends_it() {
    let config = |config: &mut bootstrap::Config| config.limits.job_seconds = 0;
    let ended = Scene::start(&Plan { config, ..Plan::default() }).ended();
    assert!(ended.power_offs == 1 && ended.output.contains("limits.jobSeconds"), "{}", ended.output);
    let plan = Plan { arguments: vec!["--config", "/nowhere"], ..Plan::default() };
    let ended = Scene::start(&plan).ended();
    assert!(ended.power_offs == 1 && ended.output.contains("/nowhere"), "{}", ended.output);
}

#[test]
fn a_panic_anywhere_is_reported_and_ends_it() {
    for (fault, step) in [
        ("panic:Download", Step::Download),
        ("panic:Start", Step::Start),
        ("main-panic:Credentials", Step::Credentials),
        ("main-panic:Job", Step::Job),
    ] {
        let script = format!("{JOB}sleep 300\n");
        let plan = Plan { script, arguments: vec!["--fault", fault], ..Plan::default() };
        let end = ends(&plan, EndReason::Panicked, step);
        assert!(end.message.contains("a fault of a test"), "{end:?}");
    }
    let output = ends_alone(&Plan { arguments: vec!["--fault", "panic:Exchange"], ..Plan::default() });
    assert!(output.contains("a fault of a test"), "{output}");
    // Before it has read its configuration it knows of no copies, but of the file itself.
    let ended = Scene::start(&Plan { arguments: vec!["--fault", "panic:Configure"], ..Plan::default() }).ended();
    assert!(ended.power_offs == 1 && !ended.scene.root.path().join("guest.json").exists(), "{}", ended.output);
}

#[test]
fn a_guest_that_is_gone_or_hangs_is_ended_by_its_watchdog() {
    for arguments in [
        vec!["--fault", "abort:Exchange"],
        vec!["--fault", "abort:Download"],
        vec!["--fault", "hang:Download", "--hang-seconds", "2"],
    ] {
        let ended = Scene::start(&Plan { arguments, ..Plan::default() }).ended();
        assert_eq!((ended.power_offs, ended.scene.heard().ends.len()), (1, 0), "{}", ended.output);
    }
}

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(process).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn who_stops_the_guest_stops_the_machine() {
    let scene = Scene::start(&Plan { script: format!("{JOB}sleep 300\n"), ..Plan::default() });
    scene.until("the job", |scene| scene.heard().reports.iter().any(|report| report.phase == Phase::Running));
    signal(scene.guest.id(), Signal::TERM);
    let ended = scene.ended();
    assert_eq!(ended.end().reason, EndReason::Terminated);
    ended.has_no_secret();
}

#[test]
fn a_guest_without_its_watchdog_ends_and_powers_off_by_itself() {
    let scene = Scene::start(&Plan { script: "sleep 300\n".to_owned(), ..Plan::default() });
    scene.until("the runner", |scene| scene.heard().reports.iter().any(|report| report.phase == Phase::Idle));
    signal(scene.guest.id(), Signal::KILL);
    let ended = scene.ended();
    assert_eq!(ended.end().reason, EndReason::Terminated);
    ended.has_no_secret();
}

#[test]
fn a_lost_end_is_said_again() {
    let answers = vec![(500, String::new(), Vec::new()), (200, String::new(), b"{}".to_vec())];
    let plan = Plan { answers: vec![(END_PATH, answers)], ..Plan::default() };
    let ended = Scene::start(&plan).ended();
    assert_eq!((ended.power_offs, ended.scene.heard().ends.len()), (1, 2));
}

#[test]
fn an_archive_of_a_server_with_an_authority_of_its_own_is_trusted_by_that_and_by_no_other() {
    let end = ends(&Plan { elsewhere: Some(true), ..Plan::default() }, EndReason::JobCompleted, Step::Job);
    assert!(end.ran_job);
    let limits = limits(|limits| limits.prepare_seconds = SHORT);
    let script = "echo was run".to_owned();
    let ended = Scene::start(&Plan { elsewhere: Some(false), limits, script, ..Plan::default() }).ended();
    assert_eq!(ended.end().step, Step::Download);
    assert!(!ended.output.contains("was run"), "{}", ended.output);
}

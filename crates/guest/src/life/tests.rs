//! Tests over every step, every event and every limit: the power is always switched off, in time, after the last report and the wipe.

use super::{Action, Event, KILL, Life, Outcome, State, WIPE};
use bootstrap::{EndReason, Limits, Phase, Step};
use std::collections::HashSet;
use std::time::Duration;

const LIMITS: Limits = Limits {
    exchange_seconds: 5,
    prepare_seconds: 5,
    idle_seconds: 6,
    job_seconds: 7,
    lifetime_seconds: 20,
    silence_seconds: 9,
    heartbeat_seconds: 4,
    stop_seconds: 3,
    end_seconds: 5,
};
const STEPS: [Step; 9] = [
    Step::Configure,
    Step::Exchange,
    Step::Download,
    Step::Verify,
    Step::Unpack,
    Step::Credentials,
    Step::Start,
    Step::Idle,
    Step::Job,
];

fn granted() -> Event {
    Event::Granted { expire_in: Duration::from_secs(8), has_archive: true, remove_at_job_start: true }
}

fn every_event() -> Vec<Event> {
    let mut events = vec![
        Event::Configured(LIMITS),
        granted(),
        Event::Granted { expire_in: Duration::MAX, has_archive: false, remove_at_job_start: false },
        Event::NotYet("refused".to_owned()),
        Event::JobStarted,
        Event::JobEnded,
        Event::RunnerExited(Some(0)),
        Event::RunnerExited(Some(7)),
        Event::RunnerExited(None),
        Event::Heard { stop: false },
        Event::Heard { stop: true },
        Event::Unheard,
        Event::EndSent,
        Event::EndUnsent,
        Event::Wiped,
        Event::Terminate,
        Event::Tick,
    ];
    for step in STEPS {
        events.extend([Event::Done(step), Event::Failed(step, "broken".to_owned())]);
    }
    events
}

/// A guest at this step, at second 1, with a runner if there is one by then.
fn at(step: Step) -> (Life, Duration) {
    let (mut life, _) = Life::start();
    let now = Duration::from_secs(1);
    let way = [
        Event::Configured(LIMITS),
        granted(),
        Event::Done(Step::Download),
        Event::Done(Step::Verify),
        Event::Done(Step::Unpack),
        Event::Done(Step::Credentials),
        Event::Done(Step::Start),
        Event::JobStarted,
    ];
    for event in way {
        if life.at() == Some(step) {
            break;
        }
        life.step(event, now);
    }
    assert_eq!(life.at(), Some(step));
    (life, now)
}

/// What happens if nobody answers any more: only time passes.
fn alone(mut life: Life, mut now: Duration) -> (Vec<Action>, Duration) {
    let mut actions = Vec::new();
    for _ in 0..100 {
        if life.is_over() {
            return (actions, now);
        }
        now = now.max(life.deadline());
        actions.extend(life.step(Event::Tick, now));
    }
    panic!("it never ends: {life:?}");
}

/// The end of a life whose actions all succeed from now on.
fn helped(mut life: Life, now: Duration, mut actions: Vec<Action>) -> Vec<Action> {
    let mut next = 0;
    while let Some(action) = actions.get(next).cloned() {
        next += 1;
        let event = match action {
            Action::StopRunner => Event::RunnerExited(Some(143)),
            Action::SendEnd(_) => Event::EndSent,
            Action::Wipe => Event::Wiped,
            _ => continue,
        };
        actions.extend(life.step(event, now));
    }
    assert!(life.is_over(), "{life:?}");
    actions
}

fn outcome(actions: &[Action]) -> Option<Outcome> {
    actions.iter().find_map(|action| if let Action::SendEnd(outcome) = action { Some(outcome.clone()) } else { None })
}

fn position(actions: &[Action], wanted: impl Fn(&Action) -> bool) -> usize {
    actions.iter().position(wanted).unwrap_or(usize::MAX)
}

#[test]
fn from_every_state_that_any_events_lead_to_the_power_is_switched_off_in_time() {
    let bound = Duration::from_secs(LIMITS.lifetime_seconds + LIMITS.stop_seconds + LIMITS.end_seconds) + KILL + WIPE;
    let (start, _) = Life::start();
    // Without heartbeats and with few repetitions, which only multiply the moments; both have tests of their own.
    let limits = Limits { heartbeat_seconds: 60, exchange_seconds: 3, end_seconds: 3, ..LIMITS };
    let mut open = vec![(start, Duration::ZERO)];
    let mut seen: HashSet<(Life, Duration)> = open.iter().cloned().collect();
    let mut events = every_event();
    events[0] = Event::Configured(limits);
    while let Some((life, now)) = open.pop() {
        let (actions, end) = alone(life.clone(), now);
        let is_ending = matches!(life.state, State::Wiping | State::Off | State::Ending { .. });
        assert!(end <= bound.max(Duration::from_secs(60) + WIPE), "{end:?}: {life:?}");
        if !life.is_over() {
            let (wiped, off) =
                (position(&actions, |a| *a == Action::Wipe), position(&actions, |a| *a == Action::PowerOff));
            assert!(off < usize::MAX && (wiped < off || life.state == State::Wiping), "{life:?}: {actions:?}");
            if life.is_granted && !is_ending {
                assert!(outcome(&actions).is_some(), "{life:?}: {actions:?}");
            }
        }
        for event in &events {
            // Time passes from one limit to the next; between two limits it makes no difference when something happens.
            let later = if *event == Event::Tick { now.max(life.deadline()) } else { now };
            let mut next = life.clone();
            next.step(event.clone(), later);
            if !next.is_over() && seen.insert((next.clone(), later)) {
                open.push((next, later));
            }
        }
    }
    assert!(seen.len() > 10_000, "{}", seen.len());
}

#[test]
fn a_failure_of_any_step_ends_with_its_reason() {
    for step in STEPS {
        let (mut life, now) = at(step);
        let event = match step {
            Step::Idle | Step::Job => Event::RunnerExited(Some(3)),
            _ => Event::Failed(step, "broken".to_owned()),
        };
        let actions = life.step(event, now);
        let actions = helped(life, now, actions);
        assert_eq!(actions.last(), Some(&Action::PowerOff), "{step:?}");
        let outcome = outcome(&actions);
        match step {
            Step::Configure | Step::Exchange => assert_eq!(outcome, None, "there is no token to report with"),
            Step::Idle | Step::Job => {
                let outcome = outcome.unwrap();
                assert_eq!((outcome.reason, outcome.step), (EndReason::RunnerExited, step));
                assert_eq!((outcome.ran_job, outcome.exit_code), (step == Step::Job, Some(3)));
            }
            _ => {
                let outcome = outcome.unwrap();
                assert_eq!((outcome.reason, outcome.step), (EndReason::StepFailed, step));
                assert_eq!((outcome.message.as_str(), outcome.ran_job), ("broken", false));
            }
        }
    }
}

#[test]
fn a_step_that_never_answers_ends_with_its_limit() {
    use EndReason::{JobLimit, OperatorSilent, StepFailed};
    let reasons = [
        (Step::Configure, None),
        (Step::Exchange, None),
        (Step::Download, Some(StepFailed)),
        (Step::Verify, Some(StepFailed)),
        (Step::Unpack, Some(StepFailed)),
        (Step::Credentials, Some(StepFailed)),
        (Step::Start, Some(StepFailed)),
        (Step::Idle, Some(EndReason::IdleLimit)),
        (Step::Job, Some(JobLimit)),
    ];
    for (step, reason) in reasons {
        let (life, now) = at(step);
        let (actions, end) = alone(life, now);
        assert_eq!(outcome(&actions).map(|outcome| outcome.reason), reason, "{step:?}");
        assert!(end <= Duration::from_secs(80), "{step:?}: {end:?}");
    }
    // The other limits, each the shortest one.
    for (limits, step, reason) in [
        (Limits { silence_seconds: 2, ..LIMITS }, Step::Idle, OperatorSilent),
        (Limits { silence_seconds: 2, ..LIMITS }, Step::Job, JobLimit),
        (Limits { lifetime_seconds: 3, ..LIMITS }, Step::Job, EndReason::LifetimeLimit),
        (Limits { lifetime_seconds: 3, ..LIMITS }, Step::Idle, EndReason::LifetimeLimit),
        (Limits { idle_seconds: 60, ..LIMITS }, Step::Idle, EndReason::CredentialsExpired),
        (Limits { prepare_seconds: 60, ..LIMITS }, Step::Unpack, EndReason::CredentialsExpired),
    ] {
        let (mut life, now) = at(step);
        life.limits = limits;
        let (actions, _) = alone(life, now);
        assert_eq!(outcome(&actions).unwrap().reason, reason, "{step:?} {limits:?}");
    }
}

#[test]
fn credentials_that_expire_end_no_job() {
    let (mut life, _) = at(Step::Job);
    life.limits.job_seconds = 15;
    let actions = life.step(Event::Tick, Duration::from_secs(12));
    assert!(!actions.contains(&Action::StopRunner), "{actions:?}");
    assert_eq!(life.at(), Some(Step::Job));
}

#[test]
fn who_stops_the_guest_ends_every_step_and_a_drain_ends_all_but_a_job() {
    for step in STEPS {
        let (mut life, now) = at(step);
        let actions = life.step(Event::Terminate, now);
        let has_runner = matches!(step, Step::Start | Step::Idle | Step::Job);
        assert_eq!(actions.contains(&Action::StopRunner), has_runner, "{step:?}");
        let actions = helped(life, now, actions);
        if !matches!(step, Step::Configure | Step::Exchange) {
            assert_eq!(outcome(&actions).unwrap().reason, EndReason::Terminated, "{step:?}");
            let (mut life, now) = at(step);
            life.step(Event::Heard { stop: true }, now);
            assert_eq!(life.at(), (step == Step::Job).then_some(step), "{step:?}");
        }
    }
}

#[test]
fn a_job_is_run_once_and_reported() {
    let (mut life, first) = Life::start();
    assert_eq!(first, [Action::Do(Step::Configure)]);
    let now = Duration::from_secs(1);
    assert_eq!(life.step(Event::Configured(LIMITS), now), [Action::Do(Step::Exchange)]);
    assert_eq!(life.step(granted(), now), [Action::Do(Step::Download), Action::Report(Phase::Preparing)]);
    for (done, next) in [
        (Step::Download, Step::Verify),
        (Step::Verify, Step::Unpack),
        (Step::Unpack, Step::Credentials),
        (Step::Credentials, Step::Start),
    ] {
        assert_eq!(life.step(Event::Done(done), now), [Action::Do(next)]);
    }
    assert_eq!(life.step(Event::Heard { stop: false }, now), []);
    assert_eq!(life.step(Event::Done(Step::Start), now), [Action::Report(Phase::Idle)]);
    assert_eq!(life.step(Event::JobStarted, now), [Action::RemoveCredentials]);
    assert_eq!(
        life.step(Event::Heard { stop: false }, now),
        [Action::Report(Phase::Running)],
        "a new phase waits for no pause"
    );
    assert_eq!(life.step(Event::Heard { stop: false }, now), []);
    assert_eq!(life.step(Event::Tick, now + Duration::from_secs(4)), [Action::Report(Phase::Running)]);
    assert_eq!(life.step(Event::JobEnded, now), []);
    let actions = life.step(Event::RunnerExited(Some(0)), now);
    let ended = outcome(&actions).unwrap();
    assert_eq!((ended.reason, ended.ran_job, ended.exit_code), (EndReason::JobCompleted, true, Some(0)));
    assert_eq!(life.step(Event::EndSent, now), [Action::Wipe]);
    assert_eq!(life.step(Event::Wiped, now), [Action::PowerOff]);
    assert_eq!(life.step(Event::Tick, now + Duration::from_secs(60)), [Action::PowerOff], "again, if it had no effect");
}

#[test]
fn a_runner_that_stays_after_its_job_is_stopped_and_then_killed() {
    let (mut life, now) = at(Step::Job);
    life.step(Event::JobEnded, now);
    let (actions, _) = alone(life, now);
    let stopped = position(&actions, |action| *action == Action::StopRunner);
    let killed = position(&actions, |action| *action == Action::KillRunner);
    assert!(stopped < killed && killed < actions.len(), "{actions:?}");
    assert_eq!(outcome(&actions).unwrap().reason, EndReason::JobCompleted);
}

#[test]
fn a_runner_of_a_refused_version_is_named_as_such() {
    let (mut life, now) = at(Step::Idle);
    let actions = life.step(Event::RunnerExited(Some(7)), now);
    assert_eq!(outcome(&actions).unwrap().reason, EndReason::RunnerDeprecated);
}

#[test]
fn requests_that_fail_are_repeated_until_their_limit() {
    let (mut life, now) = at(Step::Exchange);
    assert_eq!(life.step(Event::NotYet("no route".to_owned()), now), []);
    assert_eq!(life.deadline(), now + Duration::from_secs(2));
    assert_eq!(life.step(Event::Tick, now + Duration::from_secs(2)), [Action::Do(Step::Exchange)]);
    assert_eq!(life.step(Event::NotYet("no route".to_owned()), now + Duration::from_secs(2)), []);
    let (actions, _) = alone(life, now + Duration::from_secs(2));
    assert_eq!(actions, [Action::Do(Step::Exchange), Action::Wipe, Action::PowerOff]);

    let (mut life, now) = at(Step::Download);
    life.step(Event::Failed(Step::Download, "404".to_owned()), now);
    life.step(Event::EndUnsent, now);
    let (actions, _) = alone(life, now);
    assert!(matches!(actions[..], [Action::SendEnd(_), Action::Wipe, Action::PowerOff]), "{actions:?}");
}

#[test]
fn a_runner_that_starts_while_the_guest_ends_is_stopped() {
    let (mut life, now) = at(Step::Start);
    life.step(Event::Terminate, now);
    assert_eq!(life.step(Event::Done(Step::Start), now), [Action::StopRunner]);
    let (mut life, now) = at(Step::Start);
    life.step(Event::Terminate, now);
    assert!(matches!(life.step(Event::Failed(Step::Start, String::new()), now)[..], [Action::SendEnd(_)]));
}

//! Scale sets: sessions, messages, acquired jobs, tokens that end, and other listeners.

use super::{Github, app, ask, connect, mended_by, organization, person, settings, start};
use crate::provider::CarryOut;
use fleet::forge::listener::{Listener, Step};
use fleet::forge::{
    Answer, Ask, Failure, JitConfig, Message, ScaleSet, ScaleSetAsk, ScaleSetEventKind, ScaleSetId, ScaleSetWanted,
    Session, SessionId,
};
use jiff::Timestamp;
use playground::github::{Assignment, Fault, FaultEffect, GithubStandIn, JobSpec, Method};
use std::time::{Duration, Instant};

async fn set(github: &Github, asked: ScaleSetAsk) -> Result<Answer, Failure> {
    ask(github, Ask::ScaleSet(asked)).await
}

fn scale_set(labels: &[&str]) -> ScaleSetWanted {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    ScaleSetWanted { name: "vms".into(), group: None, labels }
}

async fn ensure(github: &Github, labels: &[&str]) -> ScaleSet {
    match set(github, ScaleSetAsk::Ensure(scale_set(labels))).await {
        Ok(Answer::ScaleSet(Some(found))) => *found,
        other => panic!("{other:?}"),
    }
}

async fn open(github: &Github, id: ScaleSetId) -> Result<Session, Failure> {
    match set(github, ScaleSetAsk::Open { set: id, owner: "virtpilot".into() }).await {
        Ok(Answer::Session(session)) => Ok(session),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure),
    }
}

async fn poll(github: &Github, session: &SessionId, last: u64, capacity: u32) -> Result<Option<Message>, Failure> {
    match set(github, ScaleSetAsk::Poll { session: session.clone(), last, capacity }).await {
        Ok(Answer::Message(message)) => Ok(message.map(|message| *message)),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure),
    }
}

async fn jit(github: &Github, id: ScaleSetId, name: &str) -> JitConfig {
    match set(github, ScaleSetAsk::JitConfig { set: id, name: name.into() }).await {
        Ok(Answer::JitConfig(found)) => found,
        other => panic!("{other:?}"),
    }
}

fn push(stand_in: &GithubStandIn, count: usize) {
    stand_in.with(|state, now| {
        for _ in 0..count {
            state.push_job(&JobSpec::new("acme/shop", &["vms"]).lasting(Duration::from_millis(30)), now);
        }
    });
}

/// Runs jobs as a fleet would, with a listener that decides, until so many have ended. Returns how many were started.
async fn serve(stand_in: &GithubStandIn, github: &Github, id: ScaleSetId, jobs: usize) -> usize {
    let (mut listener, mut names) = (Listener::default(), 0);
    let (mut started, mut completed) = (0, 0);
    let limit = Instant::now() + Duration::from_secs(60);
    while completed < jobs {
        assert!(Instant::now() < limit, "{started} started, {completed} completed, {listener:?}");
        let (now, done) = (Timestamp::now(), |failure: &Failure, listener: &mut Listener| {
            listener.failed(failure, Timestamp::now());
        });
        let free = stand_in.with(|state, _| 3_usize.saturating_sub(state.runners().len()));
        let granted = listener.offers().iter().copied().take(free).collect();
        match listener.next(now, &granted) {
            Step::Wait(until) => {
                let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                tokio::time::sleep(left).await;
            }
            Step::Open => match open(github, id).await {
                Ok(session) => listener.opened(&session, Timestamp::now()),
                Err(failure) => done(&failure, &mut listener),
            },
            Step::Acquire(session, requests) => {
                match set(github, ScaleSetAsk::Acquire { session, requests: requests.clone() }).await {
                    Ok(_) => listener.acquired(&requests, Timestamp::now()),
                    Err(failure) => done(&failure, &mut listener),
                }
            }
            Step::Acknowledge(session, message) => {
                match set(github, ScaleSetAsk::Acknowledge { session, message }).await {
                    Ok(_) => listener.acknowledged(Timestamp::now()),
                    Err(failure) => done(&failure, &mut listener),
                }
            }
            Step::Poll(session, last) => match poll(github, &session, last, 3).await {
                Ok(message) => {
                    listener.polled(message.as_ref(), Timestamp::now());
                    for event in message.iter().flat_map(|message| &message.events) {
                        match &event.kind {
                            ScaleSetEventKind::Started(..) => started += 1,
                            ScaleSetEventKind::Completed(result, runner) => {
                                assert_eq!((result.as_str(), runner.is_some()), ("succeeded", true));
                                completed += 1;
                            }
                            _ => {}
                        }
                    }
                }
                Err(failure) => done(&failure, &mut listener),
            },
        }
        // As many machines as jobs are assigned.
        let wanted = stand_in.with(|state, _| state.statistics(id.0).assigned as usize);
        while stand_in.with(|state, _| state.runners().len()) < wanted.min(3) {
            names += 1;
            let found = jit(github, id, &format!("vm-{names}")).await;
            stand_in.with(|state, now| state.runner_online(found.config.expose(), now).unwrap());
        }
    }
    started
}

#[tokio::test]
async fn jobs_of_a_scale_set_run_on_servers_of_both_kinds() {
    for assignment in [Assignment::Acquire, Assignment::Automatic] {
        let stand_in = start(|options| options.setup.assignment = assignment);
        for (path, credentials) in [("acme", app(&stand_in)), ("acme/shop", person(&stand_in))] {
            let github = connect(&settings(&stand_in, path, credentials));
            let id = ensure(&github, &["vms"]).await.id;
            push(&stand_in, 5);
            assert_eq!(serve(&stand_in, &github, id, 5).await, 5, "{assignment:?} {path}");
            assert_eq!(stand_in.with(|state, _| state.scale_sets()[&id.0].max_capacity), 3);
            assert_eq!(set(&github, ScaleSetAsk::Delete(id)).await, Ok(Answer::Done));
            assert_eq!(set(&github, ScaleSetAsk::Delete(id)).await, Ok(Answer::Done), "it is gone");
        }
        assert_eq!(stand_in.with(|state, _| state.executions().len()), 10);
    }
}

/// Lost sessions, tokens that end, errors and lost answers, in the middle of the work.
#[tokio::test]
async fn every_job_runs_whatever_is_lost_on_the_way() {
    let stand_in = start(|options| options.setup.timing.poll = Duration::from_millis(200));
    let github = organization(&stand_in);
    let id = ensure(&github, &["vms"]).await.id;
    for (round, trouble) in
        ["tokens", "sessions", "502", "lost poll", "lost acknowledgement", "lost acquisition"].iter().enumerate()
    {
        push(&stand_in, 2);
        match *trouble {
            "tokens" => stand_in.with(|state, _| state.expire_service_tokens()),
            "sessions" => stand_in.with(|state, _| state.lose_sessions()),
            "502" => stand_in.inject(Fault::once(Method::Get, "/messages", FaultEffect::Fail(502, "no".into()))),
            "lost poll" => stand_in.inject(Fault::once(Method::Get, "/messages", FaultEffect::Drop)),
            "lost acknowledgement" => stand_in.inject(Fault::once(Method::Delete, "/messages", FaultEffect::LoseReply)),
            _ => stand_in.inject(Fault::once(Method::Post, "/acquirejobs", FaultEffect::LoseReply)),
        }
        // The session before is left as a process that died leaves it.
        serve(&stand_in, &github, id, 2).await;
        stand_in.with(|state, _| state.lose_sessions());
        assert_eq!(stand_in.with(|state, _| state.executions().len()), 2 * (round + 1), "{trouble}");
    }
}

#[tokio::test]
async fn a_session_of_another_listener_is_taken_over_when_it_ends() {
    let stand_in = start(|options| {
        options.setup.timing.session = Duration::from_millis(1200);
        options.setup.timing.poll = Duration::from_millis(100);
    });
    let (first, second) = (organization(&stand_in), organization(&stand_in));
    let id = ensure(&first, &["vms"]).await.id;
    let session = open(&first, id).await.unwrap();
    assert_eq!(poll(&first, &session.id, 0, 1).await, Ok(None), "no message");
    let failure = open(&second, id).await.unwrap_err();
    assert!(matches!(&failure, Failure::Taken(text) if text.contains("stop it")), "{failure:?}");
    // The first one stops.
    let started = Instant::now();
    let taken = loop {
        match open(&second, id).await {
            Ok(session) => break session,
            Err(Failure::Taken(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(other) => panic!("{other:?}"),
        }
        assert!(started.elapsed() < Duration::from_secs(10));
    };
    assert_ne!(taken.id, session.id);
    assert!(
        matches!(poll(&first, &session.id, 0, 1).await, Err(Failure::SessionLost(_))),
        "it is not the first one's any more"
    );
    assert!(matches!(poll(&first, &session.id, 0, 1).await, Err(Failure::SessionLost(_))));
    assert_eq!(set(&second, ScaleSetAsk::Close(taken.id)).await, Ok(Answer::Done));
    open(&first, id).await.unwrap();
    // A process that stops closes what it has open.
    assert!(matches!(open(&second, id).await, Err(Failure::Taken(_))));
    first.close().await;
    open(&second, id).await.unwrap();
}

#[tokio::test]
async fn tokens_of_the_queue_and_the_service_are_renewed() {
    let stand_in = start(|options| options.setup.timing.poll = Duration::from_millis(100));
    let github = organization(&stand_in);
    let id = ensure(&github, &["vms"]).await.id;
    let session = open(&github, id).await.unwrap();
    for _ in 0..3 {
        stand_in.with(|state, _| state.expire_service_tokens());
        stand_in.forget_requests();
        assert_eq!(poll(&github, &session.id, 0, 1).await, Ok(None));
        let lines = stand_in.requests();
        let refused = lines.iter().filter(|line| line.status == Some(401)).count();
        let renewed = stand_in.count(Method::Patch, "/sessions/");
        assert_eq!((refused, renewed, lines.len()), (2, 2, 6), "queue and service, each once: {lines:#?}");
    }
    // Before their end the token of the service is renewed without a refusal.
    let short = start(|options| options.setup.timing.service_token = Duration::from_secs(4));
    let github = organization(&short);
    let end = Instant::now() + Duration::from_secs(6);
    while Instant::now() < end {
        ensure(&github, &["vms"]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(short.requests().iter().filter(|line| line.status == Some(401)).count(), 0);
    let renewed = short.count(Method::Post, "/runner-registration");
    assert!((2..=4).contains(&renewed), "{renewed}");
}

/// A connection that is silent is given up, and the next poll has another one.
#[tokio::test]
async fn a_poll_without_an_answer_is_given_up_and_the_message_comes_on_a_new_connection() {
    let stand_in = start(|options| options.setup.timing.poll = Duration::from_secs(30));
    let mut settings = settings(&stand_in, "acme", app(&stand_in));
    (settings.limits.poll, settings.limits.poll_margin) = (Duration::from_millis(300), Duration::from_millis(200));
    let github = connect(&settings);
    let id = ensure(&github, &["vms"]).await.id;
    let session = open(&github, id).await.unwrap();
    let started = Instant::now();
    let failure = poll(&github, &session.id, 0, 1).await.unwrap_err();
    assert!(matches!(&failure, Failure::Transient(text) if text.contains("no answer within")), "{failure:?}");
    assert!((Duration::from_millis(500)..Duration::from_secs(5)).contains(&started.elapsed()));
    push(&stand_in, 1);
    let message = poll(&github, &session.id, 0, 1).await.unwrap().unwrap();
    assert_eq!((message.events[0].kind.clone(), message.statistics.available), (ScaleSetEventKind::Available, 1));
    assert_eq!(message.events[0].repository.to_string(), "acme/shop");
    // It comes again until it is acknowledged.
    assert_eq!(poll(&github, &session.id, 0, 1).await.unwrap().unwrap().id, message.id);
    let acknowledged = ScaleSetAsk::Acknowledge { session: session.id.clone(), message: message.id };
    assert_eq!(set(&github, acknowledged).await, Ok(Answer::Done));
    assert!(matches!(poll(&github, &session.id, 0, 1).await, Err(Failure::Transient(_))));
}

#[tokio::test]
async fn an_existing_scale_set_keeps_its_labels_and_a_lost_answer_makes_no_second_one() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    let find = || ScaleSetAsk::Find { name: "VMS".into(), group: None };
    assert_eq!(set(&github, find()).await, Ok(Answer::ScaleSet(None)));
    stand_in.inject(Fault::once(Method::Post, "/runnerscalesets", FaultEffect::LoseReply));
    assert!(matches!(set(&github, ScaleSetAsk::Ensure(scale_set(&["a", "b"]))).await, Err(Failure::Transient(_))));
    let found = ensure(&github, &["c"]).await;
    assert_eq!(found.labels, ["a".to_owned(), "b".to_owned()].into(), "the caller sees that they differ");
    assert!(!found.is_new);
    let read = |id| set(&github, ScaleSetAsk::Read(id));
    assert!(matches!(read(found.id).await, Ok(Answer::ScaleSet(Some(same))) if same.name == found.name));
    assert_eq!(read(ScaleSetId(99)).await, Ok(Answer::ScaleSet(None)));
    assert!(matches!(set(&github, find()).await, Ok(Answer::ScaleSet(Some(_)))));
    assert_eq!(stand_in.with(|state, _| state.scale_sets().len()), 1);
    let mut in_group = scale_set(&[]);
    in_group.group = Some("nobody".into());
    let said = mended_by(set(&github, ScaleSetAsk::Ensure(in_group)).await);
    assert!(said.contains("has no runner group nobody"), "{said}");
    let gone = set(&github, ScaleSetAsk::Open { set: ScaleSetId(99), owner: "a".into() }).await;
    assert!(matches!(gone, Err(Failure::Permanent(_))), "{gone:?}");
}

#[tokio::test]
async fn runners_of_a_scale_set_are_removed_unless_they_are_busy() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    let id = ensure(&github, &["vms"]).await.id;
    let found = jit(&github, id, "vm-1").await;
    let again = set(&github, ScaleSetAsk::JitConfig { set: id, name: "vm-1".into() }).await;
    assert_eq!(again, Err(Failure::Exists("vm-1".into())));
    let session = open(&github, id).await.unwrap().id;
    stand_in.with(|state, now| {
        state.runner_online(found.config.expose(), now).unwrap();
        state.push_job(&JobSpec::new("acme/shop", &["vms"]), now);
    });
    let offered = poll(&github, &session, 0, 1).await.unwrap().unwrap();
    let requests = vec![offered.events[0].request, 77];
    let acquired = set(&github, ScaleSetAsk::Acquire { session, requests: requests.clone() }).await;
    assert_eq!(acquired, Ok(Answer::Acquired(vec![requests[0]])), "one that is not there is not acquired");
    while stand_in.with(|state, _| state.runners()[&found.runner.0].job.is_none()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let remove = || ScaleSetAsk::RemoveRunner(found.runner);
    stand_in.forget_requests();
    assert_eq!(set(&github, remove()).await, Err(Failure::StillBusy(found.runner)));
    stand_in.with(|state, now| state.runner_finished(found.runner.0, playground::github::Conclusion::Success, now));
    while stand_in.with(|state, _| state.runners().contains_key(&found.runner.0)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(set(&github, remove()).await, Ok(Answer::Done), "it is gone");
    assert_eq!(stand_in.count(Method::Delete, "/orgs/acme"), 0, "at no cost of the budget");
}

/// No token of any kind is in a report, a message or what is shown of values.
#[tokio::test]
async fn no_answer_and_no_failure_shows_a_token() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    let id = ensure(&github, &["vms"]).await.id;
    let session = open(&github, id).await.unwrap();
    let mut shown = format!("{session:?} {:?}", jit(&github, id, "vm-1").await);
    let echo = |text: &str| FaultEffect::Fail(400, format!("bad token {text} in header"));
    for token in ["ghs_abc.def.ghi", "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.x", "ghp_abc"] {
        stand_in.inject(Fault::once(Method::Get, "/actions/runners", echo(token)));
        stand_in.inject(Fault::once(Method::Get, "/messages", echo(token)));
        shown += &format!("{:?}", ask(&github, Ask::ListRunners { name: None }).await);
        shown += &format!("{:?}", poll(&github, &session.id, 0, 1).await);
    }
    assert!(!shown.contains("eyJ") && !shown.contains("ghs_") && !shown.contains("ghp_"), "{shown}");
    assert_eq!(shown.matches("bad token [redacted] in header").count(), 6, "{shown}");
}

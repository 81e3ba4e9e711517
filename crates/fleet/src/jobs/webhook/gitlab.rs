//! Webhooks of GitLab. They carry a token instead of a signature, and a job's tags not at all: a job that waits is looked up before it is
//! believed.

use super::{Checked, Refusal, Verdict, acceptable, in_time, places};
use crate::forge::{JobStatus, gitlab};
use crate::jobs::hmac::{hmac, is_same};
use crate::jobs::job::{Facts, JobKey, Observation, Repository, Source, State};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The longest text that is taken.
const LONGEST: usize = 256;

/// A webhook of GitLab as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// `X-Gitlab-Event`.
    pub event: Option<&'a str>,
    /// `Idempotency-Key`, which a repetition keeps, or of older versions `X-Gitlab-Event-UUID`.
    pub id: Option<&'a str>,
    /// `X-Gitlab-Token`.
    pub token: Option<&'a str>,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

#[derive(Deserialize)]
struct Event {
    build_id: u64,
    #[serde(default)]
    build_name: String,
    build_status: String,
    #[serde(default)]
    build_created_at: Option<String>,
    #[serde(default)]
    build_started_at: Option<String>,
    #[serde(default)]
    build_finished_at: Option<String>,
    #[serde(default)]
    pipeline_id: u64,
    #[serde(default)]
    runner: Option<Runner>,
    #[serde(default)]
    project: Option<Project>,
    #[serde(default)]
    repository: Option<Page>,
}

#[derive(Deserialize)]
struct Runner {
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Project {
    path_with_namespace: String,
}

/// Older versions have the address of the page only.
#[derive(Deserialize)]
struct Page {
    homepage: String,
}

/// Checks a webhook of GitLab against the accepted secrets; there are several while one is replaced.
pub fn check(delivery: &Delivery<'_>, secrets: &[&[u8]], now: Timestamp) -> Checked {
    let judged = verify(delivery, secrets).and_then(|senders| Ok((judge(delivery, now)?, senders)));
    Checked::new(judged, delivery.id, delivery.body)
}

/// What a genuine webhook says.
fn judge(delivery: &Delivery<'_>, now: Timestamp) -> Result<Verdict, Refusal> {
    let event = delivery.event.ok_or(Refusal::NoEvent)?;
    delivery.id.filter(|id| !id.is_empty() && id.len() <= 128).ok_or(Refusal::NoDelivery)?;
    if event != "Job Hook" {
        return Ok(Verdict::Ignored("other_event"));
    }
    let (facts, happened) = read(delivery.body).map_err(Refusal::Unreadable)?;
    in_time(happened, now)?;
    let at = match facts.state {
        State::Waiting => return Ok(Verdict::Ignored("needs_no_runner")),
        // As an event of long ago, which is looked up: only then its tags are known.
        State::Queued => Timestamp::UNIX_EPOCH,
        State::InProgress | State::Completed => happened.unwrap_or(Timestamp::UNIX_EPOCH),
    };
    Ok(Verdict::Accepted(Box::new(Observation { source: Source::Webhook, at, facts })))
}

/// Which of the secrets is the token, by their place. Neither their content nor their length changes the time.
fn verify(delivery: &Delivery<'_>, secrets: &[&[u8]]) -> Result<Vec<usize>, Refusal> {
    acceptable(delivery.body, secrets)?;
    let token = delivery.token.filter(|token| !token.is_empty()).ok_or(Refusal::NoSignature)?;
    let claimed = hmac(b"token", token.as_bytes());
    places(secrets, |secret| is_same(&hmac(b"token", secret), &claimed))
}

/// Reads an event: the job, and when that happened.
fn read(body: &[u8]) -> Result<(Facts, Option<Timestamp>), String> {
    let event: Event = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let path = event.project.map(|project| project.path_with_namespace);
    let page = || Some(event.repository.as_ref()?.homepage.split_once("://")?.1.split_once('/')?.1.to_owned());
    let project = path.or_else(page).and_then(|path| gitlab::project(&cut(path)));
    let project = project.ok_or_else(|| "project.path_with_namespace is not GROUP/PROJECT".to_owned())?;
    let (state, conclusion) = match gitlab::status(&event.build_status) {
        JobStatus::Waiting => (State::Waiting, None),
        JobStatus::Queued => (State::Queued, None),
        JobStatus::InProgress => (State::InProgress, None),
        JobStatus::Completed(conclusion) => (State::Completed, Some(conclusion)),
    };
    let [created, started, completed] =
        [event.build_created_at, event.build_started_at, event.build_finished_at].map(|text| time(text.as_deref()));
    let happened = match state {
        State::Waiting | State::Queued => created,
        State::InProgress => started,
        State::Completed => completed,
    };
    let runner = event.runner.and_then(|runner| runner.description).filter(|name| !name.is_empty()).map(cut);
    let facts = Facts {
        key: JobKey::Job { id: event.build_id, attempt: 1 },
        repository: Repository::new(&project.owner, &project.name),
        run: event.pipeline_id,
        name: cut(event.build_name),
        labels: BTreeSet::new(),
        group: None,
        state,
        runner: runner.filter(|_| state >= State::InProgress),
        conclusion,
        created,
        started: started.filter(|_| state == State::InProgress),
        completed: completed.filter(|_| state == State::Completed),
    };
    Ok((facts, happened.or(started).or(created)))
}

/// A moment, such as `2026-11-18 16:00:00 UTC` or in newer versions `2026-11-18T16:00:00Z`.
fn time(text: Option<&str>) -> Option<Timestamp> {
    let text = text?;
    match text.strip_suffix(" UTC") {
        Some(plain) => format!("{}Z", plain.replacen(' ', "T", 1)).parse().ok(),
        None => text.parse().ok(),
    }
}

/// At most so many characters.
fn cut(text: String) -> String {
    if text.len() <= LONGEST { text } else { text.chars().take(LONGEST).collect() }
}

#[cfg(test)]
mod tests {
    use super::{Delivery, Refusal, Verdict, check};
    use crate::jobs::job::{JobKey, Repository, State};
    use crate::jobs::table::{Change, Table};
    use crate::jobs::webhook::Receiver;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn event(id: u64, status: &str) -> Value {
        json!({
            "object_kind": "build", "ref": "main", "build_id": id, "build_name": "test", "build_stage": "test", "build_status": status,
            "build_created_at": "2026-11-15 11:59:00 UTC", "build_started_at": "2026-11-15 11:59:30 UTC",
            "build_finished_at": "2026-11-15T11:59:45Z", "pipeline_id": 7, "project_id": 3, "project_name": "Acme / Lab / Robot",
            "runner": {"id": 9, "description": "vm-1", "tags": ["pve"]},
            "project": {"id": 3, "path_with_namespace": "Acme/Lab/Robot"},
            "repository": {"name": "Robot", "homepage": "https://gitlab.example/Acme/Lab/Robot"},
        })
    }

    fn receive(receiver: &mut Receiver, id: &str, token: &str, body: &str) -> Verdict {
        let delivery = Delivery { event: Some("Job Hook"), id: Some(id), token: Some(token), body: body.as_bytes() };
        receiver.take(&check(&delivery, &[b"old", b"new"], now()))
    }

    #[test]
    fn a_job_that_waits_is_looked_up_because_its_tags_are_not_in_the_event() {
        let verdict = receive(&mut Receiver::default(), "a", "new", &event(1, "pending").to_string());
        let Verdict::Accepted(observation) = &verdict else { panic!("{verdict:?}") };
        assert_eq!(verdict.status(), 202);
        let facts = &observation.facts;
        assert_eq!((facts.key, facts.run), (JobKey::Job { id: 1, attempt: 1 }, 7));
        assert_eq!((facts.state, &facts.repository), (State::Queued, &Repository::new("acme/lab", "robot")));
        assert_eq!((&facts.runner, facts.created.is_some()), (&None, true));
        assert_eq!(Table::default().observe(observation, now()), Change::Unproven);
    }

    #[test]
    fn a_job_that_runs_or_has_ended_says_where_and_how() {
        let read = |status: &str| match receive(&mut Receiver::default(), "a", "old", &event(1, status).to_string()) {
            Verdict::Accepted(observation) => *observation,
            other => panic!("{other:?}"),
        };
        let running = read("running");
        assert_eq!((running.facts.state, running.facts.runner.as_deref()), (State::InProgress, Some("vm-1")));
        assert_eq!(running.at, "2026-11-15T11:59:30Z".parse().unwrap());
        let ended = read("failed");
        assert_eq!((ended.facts.state, ended.facts.conclusion.as_deref()), (State::Completed, Some("failure")));
        assert_eq!(ended.at, "2026-11-15T11:59:45Z".parse().unwrap());
        let mut old = event(2, "running");
        old.as_object_mut().unwrap().remove("project");
        let verdict = receive(&mut Receiver::default(), "a", "old", &old.to_string());
        let Verdict::Accepted(observation) = verdict else { panic!("{verdict:?}") };
        assert_eq!(observation.facts.repository, Repository::new("acme/lab", "robot"));
    }

    #[test]
    fn nothing_is_read_before_the_token_is_right() {
        for (token, secrets, expected) in [
            (None, &[&b"new"[..]][..], Refusal::NoSignature),
            (Some(""), &[&b"new"[..]], Refusal::NoSignature),
            (Some("ne"), &[&b"new"[..]], Refusal::WrongSignature),
            (Some("newer"), &[&b"new"[..]], Refusal::WrongSignature),
            (Some(""), &[&b""[..]], Refusal::NoSecret),
            (Some("new"), &[], Refusal::NoSecret),
        ] {
            let delivery = Delivery { event: None, id: None, token, body: b"{" };
            let verdict = Receiver::default().take(&check(&delivery, secrets, now()));
            assert_eq!((&verdict, verdict.status()), (&Verdict::Refused(expected), 401), "{token:?}");
        }
    }

    #[test]
    fn what_is_repeated_old_or_about_something_else_changes_nothing() {
        let mut receiver = Receiver::default();
        let body = event(1, "running").to_string();
        assert!(matches!(receive(&mut receiver, "a", "new", &body), Verdict::Accepted(_)));
        assert_eq!(receive(&mut receiver, "b", "new", &body), Verdict::Ignored("repeated"));
        let other = event(2, "running").to_string();
        assert_eq!(receive(&mut receiver, "a", "new", &other), Verdict::Ignored("repeated"));
        let waiting = event(3, "created").to_string();
        assert_eq!(receive(&mut receiver, "c", "new", &waiting), Verdict::Ignored("needs_no_runner"));
        let mut old = event(4, "running");
        old["build_started_at"] = "2026-11-10 00:00:00 UTC".into();
        assert_eq!(receive(&mut receiver, "d", "new", &old.to_string()), Verdict::Refused(Refusal::TooOld));
        old["build_started_at"] = "2026-12-10 00:00:00 UTC".into();
        assert_eq!(receive(&mut receiver, "d", "new", &old.to_string()), Verdict::Refused(Refusal::InFuture));
        assert_eq!(receive(&mut receiver, "e", "new", "[").status(), 400);
        let push = Delivery { event: Some("Push Hook"), id: Some("f"), token: Some("new"), body: b"{" };
        assert_eq!(receiver.take(&check(&push, &[b"new"], now())), Verdict::Ignored("other_event"));
    }
}

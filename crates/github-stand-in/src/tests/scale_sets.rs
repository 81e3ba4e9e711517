//! The actions service: scale sets, sessions and messages.

use super::Lab;
use crate::{Assignment, Conclusion, JobSpec, Poll, Reply, Request, Response, Setup};
use serde_json::{Value, json};
use std::time::Duration;

const SETS: &str = "/_services/pipelines/acme/_apis/runtime/runnerscalesets";

fn job() -> JobSpec {
    JobSpec::new("acme/shop", &["pve"]).lasting(Duration::from_secs(30))
}

/// Connects to the service of an owner.
fn connect(lab: &mut Lab, api: &str, page: &str) {
    lab.token = Setup::TOKEN.to_owned();
    let token = lab.send(&format!("POST /{api}/actions/runners/registration-token"), Value::Null);
    let mut request = super::request("POST /actions/runner-registration");
    request.authorization = Some(format!("RemoteAuth {}", token.at("/token").as_str().unwrap()));
    let request = request.json(json!({"url": format!("https://github.example/{page}"), "runner_event": "register"}));
    lab.token = lab.state.handle(&request, lab.now).answer().unwrap().at("/token").as_str().unwrap().to_owned();
}

fn create(lab: &mut Lab, name: &str) -> u64 {
    let body = json!({"name": name, "runnerGroupId": 1, "labels": [{"type": "System", "name": "pve"}]});
    let made = lab.send(&format!("POST {SETS}"), body);
    assert!(made.has_mark);
    made.at("/id").as_u64().unwrap()
}

/// A client of the service with a scale set.
fn connected(assignment: Assignment) -> (Lab, u64) {
    let mut lab = Lab::with(|setup| setup.assignment = assignment);
    connect(&mut lab, "orgs/acme", "acme");
    let set = create(&mut lab, "pve");
    (lab, set)
}

/// A listener.
struct Listener {
    set: u64,
    session: String,
    token: String,
    last: u64,
}

impl Listener {
    fn open(lab: &mut Lab, set: u64) -> (Listener, Response) {
        let opened = lab.send(&format!("POST {SETS}/{set}/sessions"), json!({"ownerName": "test"}));
        assert_eq!(opened.status, 200, "{opened:?}");
        let text = |pointer: &str| opened.at(pointer).as_str().unwrap().to_owned();
        let listener = Listener { set, session: text("/sessionId"), token: text("/messageQueueAccessToken"), last: 0 };
        (listener, opened)
    }

    fn ask(&self, lab: &mut Lab, line: &str, body: Value) -> Reply {
        let mut request = super::request(line).token(&self.token).json(body);
        request.max_capacity = Some(2);
        lab.handle(request)
    }

    fn wait(&self, lab: &mut Lab) -> Poll {
        let line = format!("GET {SETS}/{}/messages?sessionId={}&lastMessageId={}", self.set, self.session, self.last);
        match self.ask(lab, &line, Value::Null) {
            Reply::Wait(poll) => poll,
            other => panic!("{other:?}"),
        }
    }

    /// The items of the next message, which is deleted; nothing if there is none now.
    fn next(&mut self, lab: &mut Lab) -> Vec<(String, u64)> {
        let poll = self.wait(lab);
        let Some(response) = lab.state.poll(&poll, lab.now) else { return Vec::new() };
        self.last = response.at("/messageId").as_u64().unwrap();
        let line = format!("DELETE {SETS}/{}/messages/{}?sessionId={}", self.set, self.last, self.session);
        assert_eq!(self.ask(lab, &line, Value::Null).answer().unwrap().status, 204);
        items(&response)
    }

    fn acquire(&self, lab: &mut Lab, jobs: &[u64]) -> Value {
        let line = format!("POST {SETS}/{}/acquirejobs", self.set);
        self.ask(lab, &line, json!(jobs)).answer().unwrap().at("/value").clone()
    }
}

fn items(response: &Response) -> Vec<(String, u64)> {
    let body: Vec<Value> = serde_json::from_str(response.at("/body").as_str().unwrap()).unwrap();
    let read =
        |item: &Value| (item["messageType"].as_str().unwrap().to_owned(), item["runnerRequestId"].as_u64().unwrap());
    body.iter().map(read).collect()
}

fn item(kind: &str, job: u64) -> (String, u64) {
    (kind.to_owned(), job)
}

fn jit(lab: &mut Lab, set: u64, name: &str) -> String {
    let line = format!("POST {SETS}/{set}/generatejitconfig");
    lab.send(&line, json!({"name": name, "workFolder": "_work"})).at("/encodedJITConfig").as_str().unwrap().to_owned()
}

#[test]
fn a_job_is_offered_acquired_started_and_completed() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let (mut listener, opened) = Listener::open(&mut lab, set);
    assert_eq!(opened.at("/statistics/totalAssignedJobs"), 0);
    lab.state.push_job(&JobSpec::new("acme/shop", &["gpu"]), lab.now);
    let id = lab.state.push_job(&job(), lab.now);
    assert_eq!(listener.next(&mut lab), [item("JobAvailable", id)]);
    listener.last = 0;
    assert_eq!(listener.next(&mut lab), [], "it was deleted");
    assert_eq!(lab.state.statistics(set).available, 1);
    assert_eq!(listener.acquire(&mut lab, &[id, 7]), json!([id]));
    assert_eq!(listener.next(&mut lab), [item("JobAssigned", id)]);
    let config = jit(&mut lab, set, "vm-1");
    lab.state.runner_online(&config, lab.now).unwrap();
    assert_eq!(lab.state.statistics(set).idle, 1);
    lab.pass(1000);
    assert_eq!(listener.next(&mut lab), [item("JobStarted", id)]);
    let agents = "/_services/pipelines/acme/_apis/distributedtask/pools/0/agents";
    let runner = lab.state.jobs()[&id].ran_on().unwrap().id;
    let busy = lab.send(&format!("DELETE {agents}/{runner}"), Value::Null);
    assert_eq!(busy.status, 400);
    assert!(busy.at("/typeName").as_str().unwrap().contains("JobStillRunningException"));
    let found = lab.state.statistics(set);
    assert_eq!((found.assigned, found.running, found.busy, found.acquired), (1, 1, 1, 0));
    lab.pass(30_000);
    assert_eq!(listener.next(&mut lab), [item("JobCompleted", id)]);
    assert_eq!(lab.state.statistics(set).assigned, 0);
    assert_eq!(lab.state.jobs()[&id].conclusion(), Some(Conclusion::Success));
}

#[test]
fn a_poll_waits_until_there_is_something_or_its_time_is_over() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let (listener, _) = Listener::open(&mut lab, set);
    let poll = listener.wait(&mut lab);
    assert_eq!(poll.until, Duration::from_secs(50));
    lab.pass(49_999);
    assert_eq!(lab.state.poll(&poll, lab.now), None);
    lab.pass(1);
    assert_eq!(lab.state.poll(&poll, lab.now).unwrap().status, 202);
    lab.state.push_job(&job(), lab.now);
    let first = lab.state.poll(&poll, lab.now).unwrap();
    assert_eq!(lab.state.poll(&poll, lab.now), Some(first), "a message comes again until it is deleted");
    assert_eq!(lab.state.poll(&Poll { last: 1, until: lab.now * 2, ..poll }, lab.now), None, "unless it is known");
}

#[test]
fn there_is_one_session_and_another_one_only_when_it_is_silent_or_ended() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let (first, _) = Listener::open(&mut lab, set);
    let line = format!("POST {SETS}/{set}/sessions");
    let conflict = lab.send(&line, json!({"ownerName": "test"}));
    assert_eq!(conflict.status, 409);
    assert_eq!(conflict.at("/message"), "The actions runner scaleset pve already has an active session.");
    assert!(conflict.at("/typeName").as_str().unwrap().contains("RunnerScaleSetSessionConflictException"));
    lab.pass(119_999);
    let poll = first.wait(&mut lab);
    lab.pass(20_000);
    assert_eq!(lab.state.poll(&poll, lab.now), None);
    lab.pass(119_999);
    assert_eq!(lab.send(&line, json!({})).status, 409, "the poll kept it alive");
    lab.pass(1);
    let (second, _) = Listener::open(&mut lab, set);
    assert_eq!(lab.state.poll(&poll, lab.now).unwrap().status, 404, "the first one was taken over");
    let gone = format!("GET {SETS}/{set}/messages?sessionId={}", first.session);
    assert_eq!(first.ask(&mut lab, &gone, Value::Null).answer().unwrap().status, 404);
    let delete = format!("DELETE {SETS}/{set}/sessions/{}", second.session);
    assert_eq!(lab.send(&delete, Value::Null).status, 204);
    Listener::open(&mut lab, set);
    lab.state.lose_sessions();
    Listener::open(&mut lab, set);
}

#[test]
fn what_was_in_messages_of_an_old_session_is_in_the_statistics_of_the_next() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let (mut listener, _) = Listener::open(&mut lab, set);
    let (first, second) = (lab.state.push_job(&job(), lab.now), lab.state.push_job(&job(), lab.now));
    assert_eq!(listener.next(&mut lab), [item("JobAvailable", first), item("JobAvailable", second)]);
    listener.acquire(&mut lab, &[first]);
    let poll = listener.wait(&mut lab);
    assert_eq!(items(&lab.state.poll(&poll, lab.now).unwrap()), [item("JobAssigned", first)], "nobody deletes it");
    lab.state.lose_sessions();
    let third = lab.state.push_job(&job(), lab.now);
    let (mut listener, opened) = Listener::open(&mut lab, set);
    assert_eq!(opened.at("/statistics/totalAssignedJobs"), 1);
    assert_eq!(listener.next(&mut lab), [item("JobAvailable", second), item("JobAvailable", third)]);
}

#[test]
fn jobs_are_assigned_up_to_the_capacity_where_they_need_not_be_acquired() {
    let (mut lab, set) = connected(Assignment::Automatic);
    let (mut listener, _) = Listener::open(&mut lab, set);
    let ids: Vec<u64> = (0..5).map(|_| lab.state.push_job(&job(), lab.now)).collect();
    assert_eq!(listener.next(&mut lab), [item("JobAssigned", ids[0]), item("JobAssigned", ids[1])]);
    assert_eq!(lab.state.statistics(set).assigned, 2);
    let config = jit(&mut lab, set, "vm-1");
    lab.state.runner_online(&config, lab.now).unwrap();
    lab.pass(31_000);
    let expected = [item("JobStarted", ids[0]), item("JobCompleted", ids[0]), item("JobAssigned", ids[2])];
    assert_eq!(listener.next(&mut lab), expected);
}

#[test]
fn a_job_is_offered_to_all_that_fit_and_goes_to_the_first() {
    let (mut lab, first) = connected(Assignment::Acquire);
    let second = create(&mut lab, "also-pve");
    let (first, second) = (Listener::open(&mut lab, first).0, Listener::open(&mut lab, second).0);
    let id = lab.state.push_job(&job(), lab.now);
    for listener in [&first, &second] {
        let poll = listener.wait(&mut lab);
        assert_eq!(items(&lab.state.poll(&poll, lab.now).unwrap()), [item("JobAvailable", id)]);
    }
    assert_eq!(second.acquire(&mut lab, &[id]), json!([id]));
    assert_eq!(first.acquire(&mut lab, &[id]), json!([]));
    assert_eq!(second.acquire(&mut lab, &[id]), json!([id]), "asking again does no harm");
}

#[test]
fn a_scale_set_is_seen_by_its_owner_only() {
    let (mut lab, set) = connected(Assignment::Acquire);
    assert_eq!(lab.get(&format!("{SETS}/{set}")).status, 200);
    connect(&mut lab, "repos/acme/shop", "acme/shop");
    assert_eq!(lab.get(&format!("{SETS}/{set}")).status, 404);
    assert_eq!(lab.get(SETS).at("/count"), 0);
    connect(&mut lab, "enterprises/acme-corp", "enterprises/acme-corp");
    assert_eq!(lab.get(&format!("{SETS}/{set}")).status, 404);
}

#[test]
fn an_assigned_job_runs_only_on_runners_of_its_scale_set() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let (mut listener, _) = Listener::open(&mut lab, set);
    let id = lab.state.push_job(&job(), lab.now);
    listener.next(&mut lab);
    listener.acquire(&mut lab, &[id]);
    let admin = std::mem::replace(&mut lab.token, Setup::TOKEN.to_owned());
    lab.online("other", &["pve"]);
    lab.token = admin;
    lab.pass(5000);
    assert!(lab.state.jobs()[&id].is_queued());
    assert_eq!(lab.send(&format!("DELETE {SETS}/{set}"), Value::Null).status, 204);
    lab.pass(5000);
    assert_eq!(lab.state.jobs()[&id].ran_on().unwrap().name, "other");
}

#[test]
fn tokens_of_a_queue_end_and_are_refreshed() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let (listener, _) = Listener::open(&mut lab, set);
    lab.state.expire_service_tokens();
    let line = format!("GET {SETS}/{set}/messages?sessionId={}", listener.session);
    let refused = listener.ask(&mut lab, &line, Value::Null).answer().unwrap();
    assert_eq!(refused.status, 401);
    assert!(refused.at("/typeName").as_str().unwrap().contains("UnauthorizedException"));
    assert_eq!(lab.get(SETS).status, 401);
    let (mut lab, set) = connected(Assignment::Acquire);
    let (mut listener, _) = Listener::open(&mut lab, set);
    let refreshed = lab.send(&format!("PATCH {SETS}/{set}/sessions/{}", listener.session), Value::Null);
    assert_eq!(refreshed.at("/sessionId"), listener.session.as_str());
    refreshed.at("/messageQueueAccessToken").as_str().unwrap().clone_into(&mut listener.token);
    listener.wait(&mut lab);
    let admin = lab.token.clone();
    let request: Request = super::request(&line).token(&admin);
    assert_eq!(lab.handle(request).answer().unwrap().status, 401, "the queue has a token of its own");
}

#[test]
fn names_of_scale_sets_and_runners_are_unique_and_labels_do_not_change() {
    let (mut lab, set) = connected(Assignment::Acquire);
    let again = lab.send(&format!("POST {SETS}"), json!({"name": "PVE", "runnerGroupId": 1}));
    assert_eq!(again.status, 409);
    let other = lab.send(&format!("POST {SETS}"), json!({"name": "gpu", "runnerGroupId": 1}));
    assert_eq!(other.at("/labels/0/name"), "gpu", "its name is its label");
    let labels = json!({"labels": [{"name": "new"}], "RunnerSetting": {"disableUpdate": true}});
    let changed = lab.send(&format!("PATCH {SETS}/{set}"), labels);
    assert_eq!((changed.status, changed.at("/labels/0/name")), (200, &"pve".into()));
    assert_eq!(changed.at("/RunnerSetting/disableUpdate"), true);
    assert_eq!(lab.get(&format!("{SETS}?runnerGroupId=1&name=pve")).at("/count"), 1);
    assert_eq!(lab.get(&format!("{SETS}?runnerGroupId=2&name=pve")).at("/count"), 0);
    jit(&mut lab, set, "vm-1");
    let line = format!("POST {SETS}/{set}/generatejitconfig");
    let taken = lab.send(&line, json!({"name": "vm-1"}));
    assert_eq!(taken.status, 409);
    assert!(taken.at("/typeName").as_str().unwrap().contains("AgentExistsException"));
    let agents = "/_services/pipelines/acme/_apis/distributedtask/pools/0/agents";
    let id = lab.get(&format!("{agents}?agentName=vm-1")).at("/value/0/id").as_u64().unwrap();
    assert_eq!(lab.send(&format!("DELETE {agents}/{id}"), Value::Null).status, 204);
    assert!(lab.get(&format!("{agents}/{id}")).at("/typeName").as_str().unwrap().contains("AgentNotFoundException"));
    let groups = lab.get("/_services/pipelines/acme/_apis/runtime/runnergroups/?groupName=default");
    assert_eq!((groups.at("/count"), groups.at("/value/0/isDefaultGroup")), (&1.into(), &true.into()));
}

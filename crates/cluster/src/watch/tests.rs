//! Watches of a server in memory that stops answering, or whose versions go back.

use super::Watch;
use crate::server::{Server, Timeouts};
use change::{Identity, Kind};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use protocol::{Content, Groups, Kinds, WatchEvent, WatchTarget};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

const IDENTITY: Identity =
    Identity { field_manager: "me", label: ("by", "me"), annotation_prefix: "me.io/", lease: "me" };
const CORE: &str = r#"{"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"services",
    "responseKind":{"group":"","version":"v1","kind":"Service"},"scope":"Namespaced","verbs":["list"]}]}]}]}"#;

type Answered = BoxBody<Bytes, Infallible>;

/// The next answer to a list or a watch.
#[derive(Clone, Copy)]
enum Answer {
    /// This status and body.
    Now(u16, &'static str),
    /// A watch that sends this line, if any, and then nothing.
    Open(&'static str),
    /// None.
    Never,
}

/// A server with these answers to lists and watches; after the last one it does not answer any more.
struct Script {
    lists: Mutex<VecDeque<Answer>>,
    watches: Mutex<VecDeque<Answer>>,
    asked: AtomicUsize,
}

impl Script {
    async fn answer(self: Arc<Script>, request: Request<Body>) -> Result<Response<Answered>, Infallible> {
        let is_watch = request.uri().to_string().contains("watch=true");
        let queue = if is_watch { &self.watches } else { &self.lists };
        self.asked.fetch_add(1, Ordering::SeqCst);
        let next = queue.lock().unwrap().pop_front().unwrap_or(Answer::Never);
        let (code, body) = match next {
            Answer::Now(code, text) => (code, Answered::new(Full::from(text))),
            Answer::Open(line) => {
                let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{line}\n"))));
                let first = stream::iter((!line.is_empty()).then_some(frame));
                (200, Answered::new(StreamBody::new(first.chain(stream::pending()))))
            }
            Answer::Never => return std::future::pending().await,
        };
        Ok(Response::builder().status(code).body(body).unwrap())
    }
}

/// Follows Services until so many reports have come; returns them and how many requests were sent.
async fn reports(lists: &[Answer], watches: &[Answer], count: usize) -> (Vec<String>, usize) {
    let queue = |answers: &[Answer]| Mutex::new(answers.iter().copied().collect());
    let script = Arc::new(Script { lists: queue(lists), watches: queue(watches), asked: AtomicUsize::new(0) });
    let served = script.clone();
    let service = tower::service_fn(move |request| served.clone().answer(request));
    let timeouts = Timeouts {
        request: Duration::from_millis(1_200),
        silence: Duration::from_millis(200),
        verify: Duration::from_secs(3_600),
    };
    let server = Server::new("test".into(), Client::new(service, "default"), timeouts, IDENTITY);
    let (sender, mut receiver) = mpsc::channel(64);
    let kind = Kind::new("v1", "Service");
    let served = Kinds::read(CORE, Groups::default()).unwrap().find(&kind).unwrap();
    let target = WatchTarget { kind, namespace: "n".into(), name: String::new() };
    let content = Content::Metadata;
    let task = tokio::spawn(Watch { server, served, target, content, number: 0, epoch: 1, sender }.follow());
    let mut reports = Vec::new();
    while reports.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(30), receiver.recv()).await;
        reports.push(match next.unwrap_or_else(|_| panic!("nothing more after {reports:?}")).unwrap().event {
            WatchEvent::Present { name, .. } => format!("{name} is present"),
            WatchEvent::Gone { name, .. } => format!("{name} is gone"),
            WatchEvent::Listed { version, .. } => format!("listed at {version}"),
            WatchEvent::Unseen => "unseen".to_owned(),
            WatchEvent::WentBack => "versions went back".to_owned(),
            WatchEvent::Lost { why, .. } => format!("lost: {why}"),
        });
    }
    task.abort();
    (reports, script.asked.load(Ordering::SeqCst))
}

const EMPTY_AT_10: Answer = Answer::Now(200, r#"{"metadata":{"resourceVersion":"10"},"items":[]}"#);
const ONE_AT_5: Answer = Answer::Now(
    200,
    r#"{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"x","uid":"u","resourceVersion":"4"}}]}"#,
);
const ONE_AT_11: Answer = Answer::Now(
    200,
    r#"{"metadata":{"resourceVersion":"11"},"items":[{"metadata":{"name":"x","uid":"u","resourceVersion":"11"}}]}"#,
);
const ONE_AT_12: Answer = Answer::Now(
    200,
    r#"{"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"x","uid":"u","resourceVersion":"12"}}]}"#,
);
const EMPTY_AT_7: Answer = Answer::Now(200, r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#);
const SILENT: Answer = Answer::Open("");
const BOOKMARK: Answer = Answer::Open(r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"11"}}}"#);
const EXPIRED: Answer = Answer::Now(410, r#"{"kind":"Status","code":410,"message":"too old","status":"Failure"}"#);

#[tokio::test]
async fn a_silent_watch_is_followed_by_a_list_and_the_second_that_has_missed_something_is_reported_until_one_speaks() {
    let lists = [EMPTY_AT_10, ONE_AT_11, ONE_AT_12, ONE_AT_12];
    let (reports, _) = reports(&lists, &[SILENT, SILENT, BOOKMARK], 11).await;
    let (x, unseen) = ("x is present", "unseen");
    let lost = "lost: the server sends nothing, not even a bookmark, for 0 s";
    let [first, second, third] = ["listed at 10", "listed at 11", "listed at 12"];
    assert_eq!(reports, [first, unseen, x, second, unseen, x, third, lost, unseen, x, third]);
}

#[tokio::test]
async fn a_server_without_bookmarks_is_listed_while_nothing_changes_and_nothing_is_reported_as_lost() {
    let (reports, _) = reports(&[EMPTY_AT_10; 4], &[SILENT; 4], 7).await;
    let (listed, unseen) = ("listed at 10", "unseen");
    assert_eq!(reports, [listed, unseen, listed, unseen, listed, unseen, listed]);
}

#[tokio::test]
async fn a_server_that_opens_no_watch_any_more_is_reported_after_one_attempt_and_one_list() {
    let (reports, requests) = reports(&[EMPTY_AT_10], &[SILENT], 2).await;
    assert_eq!(reports, ["listed at 10", "lost: no answer in time"]);
    assert_eq!(requests, 3, "a list, a watch that is silent, and a list without an answer");
    let (reports, requests) = self::reports(&[EMPTY_AT_10], &[], 2).await;
    assert_eq!(reports, ["listed at 10", "lost: no answer in time"]);
    assert_eq!(requests, 3, "a list, and a watch and a list without an answer");
}

#[tokio::test]
async fn versions_that_went_back_are_reported_before_the_list_and_only_once() {
    let (reports, _) = reports(&[EMPTY_AT_10, ONE_AT_5, EMPTY_AT_7], &[EXPIRED, EXPIRED, SILENT], 7).await;
    assert_eq!(
        reports,
        ["listed at 10", "unseen", "versions went back", "x is present", "listed at 5", "unseen", "listed at 7"]
    );
}

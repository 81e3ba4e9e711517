//! A server in memory that answers as a test defines.

use change::{Identity, Key, Kind};
use cluster::event::{Event, Reference};
use cluster::{Server, Timeouts};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use protocol::{Groups, Kinds, Served};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

const IDENTITY: Identity = Identity {
    field_manager: "tester",
    label: ("example.io/managed-by", "tester"),
    annotation_prefix: "example.io/",
    lease: "tester",
};

/// One answer.
pub(crate) struct Answer {
    pub(crate) after: Duration,
    pub(crate) code: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn now(code: u16, body: &str) -> Answer {
        Answer { after: Duration::ZERO, code, body: body.to_owned() }
    }
}

/// A server that answers a method, a URL and a body.
pub(crate) fn answering(answer: impl Fn(&Method, &str, &str) -> Answer + Send + Sync + 'static) -> Server {
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = answer.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let Answer { after, code, body } =
                answer(&head.method, &head.uri.to_string(), &String::from_utf8_lossy(&body));
            tokio::time::sleep(after).await;
            Ok::<_, Infallible>(Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap())
        }
    });
    server(Client::new(service, "default"))
}

/// A server that never answers.
pub(crate) fn silent() -> Server {
    let service = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    server(Client::new(service, "default"))
}

fn server(client: Client) -> Server {
    Server::new("test".into(), client, Timeouts::default(), IDENTITY)
}

pub(crate) fn key(name: &str) -> Key {
    Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: name.into() }
}

/// How ConfigMaps are served.
pub(crate) fn config_maps() -> Served {
    let core = r#"{"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"configmaps",
        "responseKind":{"group":"","version":"v1","kind":"ConfigMap"},"scope":"Namespaced","verbs":["list"]}]}]}]}"#;
    Kinds::read(core, Groups::default()).unwrap().find(&Kind::new("v1", "ConfigMap")).unwrap()
}

/// An event with this note.
pub(crate) fn event(note: &str) -> Event {
    let regarding = Reference { key: key("x"), uid: "u".into() };
    let (reason, note) = ("Tested".into(), note.into());
    Event { regarding, related: None, warning: false, reason, about: None, note }
}

/// The questions of nobody.
pub(crate) fn unasked<C>() -> tokio::sync::mpsc::Receiver<crate::Question<C>> {
    tokio::sync::mpsc::channel(1).1
}

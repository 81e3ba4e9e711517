//! Lists and watches one target, or only lists it.

use crate::attempts::Attempts;
use crate::read::live::Object;
use crate::read::pages::Pages;
use crate::request::{Failure, METADATA, METADATA_LIST, Request, WHOLE};
use crate::server::Server;
use catalog::Part;
use change::Backoff;
use futures::{AsyncBufReadExt, StreamExt};
use protocol::{Body, Content, Served, WatchEvent, WatchTarget};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Some six watch requests an hour; bookmarks show that the server is still there.
const WATCH_SECONDS: u32 = 590;
/// A fresh CRD refuses its first watch and is ready tens of milliseconds later; an unreachable server is asked every 5 s.
const RETRY: Backoff = Backoff { first: Duration::from_millis(30), longest: Duration::from_secs(5) };
/// After a refusal only a person or another controller can help, so it is asked less often.
const RETRY_REFUSED: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };
/// A watch that lasted this long worked.
const WORKED: Duration = Duration::from_secs(5);
/// So often a listing without a watch is tried while a fresh CRD is not ready.
const LIST_ATTEMPTS: u32 = 5;

/// One watch.
pub struct Watch {
    /// The server.
    pub server: Server,
    /// How the server serves the kind.
    pub served: Served,
    /// What is watched.
    pub target: WatchTarget,
    /// How much of each object.
    pub content: Content,
    /// The lowest number that no other open watch has: it selects the connection.
    pub number: usize,
    /// Tells its reports from those of another watch of the same target.
    pub epoch: u64,
    /// Where its reports go.
    pub sender: mpsc::Sender<Report>,
}

/// What a watch sends.
#[derive(Debug)]
pub struct Report {
    /// What is watched.
    pub target: WatchTarget,
    /// Which watch of it.
    pub epoch: u64,
    /// What it reports.
    pub event: WatchEvent,
}

/// Nobody receives the reports any more.
struct Closed;

impl Watch {
    /// Lists and watches until nobody receives its reports any more.
    pub async fn follow(self) {
        let (mut retry, mut retry_refused) = (Attempts::with(RETRY), Attempts::with(RETRY_REFUSED));
        let mut verifies = false;
        loop {
            match self.list(verifies).await {
                Ok(version) => {
                    retry_refused.reset();
                    let listed = Instant::now();
                    // Spread, so that not all targets are listed again at the same time.
                    let verify = self.server.timeouts.verify;
                    let spread = verify / 64 * u32::try_from(self.number % 16).unwrap_or_default();
                    verifies = tokio::time::timeout(verify + spread, self.stream(version)).await.is_err();
                    if listed.elapsed() > WORKED {
                        retry.reset();
                    }
                }
                Err(failure) => {
                    // A kind that discovery names and the server does not find is about to be served, or to go.
                    let is_refusal = failure.is_refusal() && !failure.is_not_found();
                    if self.report_lost(&failure).await.is_err() {
                        return;
                    }
                    if is_refusal {
                        retry_refused.wait().await;
                        continue;
                    }
                }
            }
            if self.sender.is_closed() {
                return;
            }
            retry.wait().await;
        }
    }

    /// Lists once: reports `Listed` at the end, or `Lost` if the target cannot be listed.
    pub async fn list_once(self) {
        let mut retry = Attempts::with(RETRY);
        for attempt in 1.. {
            match self.list(false).await {
                Ok(_) => return,
                Err(Failure::Answered { code: 429, .. }) if attempt < LIST_ATTEMPTS => retry.wait().await,
                Err(failure) => {
                    let _ = self.report_lost(&failure).await;
                    return;
                }
            }
        }
    }

    /// Reports every object; returns the version from which to watch.
    async fn list(&self, verifies: bool) -> Result<String, Failure> {
        let accept = if self.is_metadata() { METADATA_LIST } else { WHOLE };
        let mut pages = Pages::new(&self.server, &self.served.url(&self.target.namespace, ""), "", accept);
        let mut all = BTreeSet::new();
        while let Some(page) = pages.fetch().await? {
            for item in pages.items(&page)? {
                let event = self.present(item.get())?;
                if let WatchEvent::Present { namespace, name, .. } = &event {
                    all.insert((namespace.clone(), name.clone()));
                }
                let _ = self.report(event).await;
            }
        }
        let version = pages.version;
        let _ = self.report(WatchEvent::Listed { all, version: version.clone(), verifies }).await;
        Ok(version)
    }

    /// Reports changes; returns when a new list is needed.
    async fn stream(&self, mut version: String) {
        let accept = if self.is_metadata() { METADATA } else { WHOLE };
        let (mut retry, mut retry_refused) = (Attempts::with(RETRY), Attempts::with(RETRY_REFUSED));
        // Whether the server lists the target but refuses to watch it.
        let mut is_lost = false;
        loop {
            let url = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}",
                self.served.url(&self.target.namespace, "")
            );
            let Ok(request) = Request::get(&url, accept).into_http() else { return };
            let opened = tokio::time::timeout(
                self.server.timeouts.request,
                self.server.watch_client(self.number).request_stream(request),
            )
            .await;
            let stream = match opened {
                // What has happened meanwhile is not known.
                Ok(Ok(_)) if is_lost => return,
                Ok(Ok(stream)) => stream,
                Ok(Err(kube::Error::Api(status))) if status.code == 410 => return,
                Ok(Err(kube::Error::Api(status)))
                    if is_lost || retry.is_longest() || [401, 403].contains(&status.code) =>
                {
                    let failure = Failure::Answered { code: status.code, message: status.message.clone() };
                    if self.sender.is_closed() || (!is_lost && self.report_lost(&failure).await.is_err()) {
                        return;
                    }
                    is_lost = true;
                    retry_refused.wait().await;
                    continue;
                }
                // A list finds out whether the server can be reached at all.
                _ if retry.is_longest() => return,
                _ => {
                    retry.wait().await;
                    continue;
                }
            };
            let opened = Instant::now();
            let mut lines = pin!(stream.lines());
            while let Ok(Some(Ok(line))) = tokio::time::timeout(self.server.timeouts.silence, lines.next()).await {
                // After a line that cannot be read, only a new list is complete.
                let Ok(change) = serde_json::from_str::<Change<'_>>(&line) else { return };
                let Ok(Object { metadata }) = serde_json::from_str::<Object<'_>>(change.object.get()) else { return };
                version = metadata.resource_version;
                let event = match change.kind {
                    "ADDED" | "MODIFIED" => match self.present(change.object.get()) {
                        Ok(event) => event,
                        Err(_) => return,
                    },
                    "DELETED" => WatchEvent::Gone {
                        namespace: metadata.namespace,
                        name: metadata.name,
                        version: version.clone(),
                    },
                    "BOOKMARK" => continue,
                    _ => return,
                };
                if self.report(event).await.is_err() {
                    return;
                }
            }
            if self.sender.is_closed() || retry.is_longest() {
                return;
            }
            if opened.elapsed() > WORKED {
                retry.reset();
            } else {
                // A watch that ends right after it was opened is not opened again at once.
                retry.wait().await;
            }
        }
    }

    async fn report_lost(&self, failure: &Failure) -> Result<(), Closed> {
        let rule = match failure {
            Failure::Answered { code: 403, .. } => self.missing_rule(),
            Failure::Answered { .. } | Failure::Unanswered(_) => String::new(),
        };
        let why = format!("{failure}{rule}");
        self.report(WatchEvent::Lost { why, is_unserved: failure.is_not_found() }).await
    }

    /// The rule that the role lacks.
    fn missing_rule(&self) -> String {
        let (group, plural) = (&self.served.kind().group, &self.served.plural);
        format!(
            "; add this rule to the role: {{apiGroups: [{group:?}], resources: [{plural:?}], verbs: [\"list\", \"watch\"]}}"
        )
    }

    async fn report(&self, event: WatchEvent) -> Result<(), Closed> {
        let report = Report { target: self.target.clone(), epoch: self.epoch, event };
        self.sender.send(report).await.map_err(|_| Closed)
    }

    fn is_metadata(&self) -> bool {
        matches!(self.content, Content::Metadata | Content::Names)
    }

    fn present(&self, text: &str) -> Result<WatchEvent, Failure> {
        let Object { metadata } = serde_json::from_str(text)?;
        let kind = &self.served.kind().kind;
        let body = match self.content {
            Content::Metadata | Content::Names => Body::None,
            Content::Part => Body::Part(Part::read(kind, text)?),
            Content::Whole => Body::Whole(serde_json::from_str(text)?),
        };
        let (namespace, name, generation) = (metadata.namespace.clone(), metadata.name.clone(), metadata.generation);
        let live = match self.content {
            Content::Names => metadata.identity_and_version(),
            // Nodes are many and large, and no product manages them.
            Content::Part if kind == "Node" => metadata.identity_and_version(),
            Content::Metadata | Content::Whole | Content::Part => metadata.live(&self.server.identity),
        };
        Ok(WatchEvent::Present { namespace, name, live, generation, body })
    }
}

/// One line of a watch.
#[derive(Deserialize)]
struct Change<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

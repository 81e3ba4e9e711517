//! Lists and watches one target, or only lists it.

mod silence;

use crate::attempts::Attempts;
use crate::read::live::Object;
use crate::read::pages::{Pages, field_selector};
use crate::request::{Failure, METADATA, METADATA_LIST, Request, WHOLE};
use crate::server::Server;
use catalog::Part;
use change::Backoff;
use futures::{AsyncBufReadExt, StreamExt};
use protocol::{Body, Content, Served, WatchEvent, WatchTarget};
use serde::Deserialize;
use serde_json::value::RawValue;
use silence::Silence;
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
/// A watch that is not opened within this is not tried again before a list.
const SLOW: Duration = Duration::from_secs(1);
/// Changes that are reported so much later than they happened are not seen in time: nodes may run them.
const UNSEEN: Duration = Duration::from_secs(5);
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

/// Why a watch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was open, and sent nothing for too long.
    Silent,
    /// Only a list is complete.
    ListNeeded,
}

impl Watch {
    /// Lists and watches until nobody receives its reports any more.
    pub async fn follow(self) {
        let (mut retry, mut retry_refused) = (Attempts::with(RETRY), Attempts::with(RETRY_REFUSED));
        // The version up to which everything was reported.
        let mut version = String::new();
        let mut silence = Silence::new(self.server.timeouts.silence);
        let (mut verifies, mut was_silent) = (false, false);
        loop {
            match self.list(&mut version, verifies).await {
                Ok((objects, has_newer)) => {
                    retry_refused.reset();
                    silence.listed(objects, has_newer, was_silent);
                    if silence.is_doubted() && self.report_lost(&self.silence()).await.is_err() {
                        return;
                    }
                    let listed = Instant::now();
                    // Spread, so that not all targets are listed again at the same time.
                    let verify = self.server.timeouts.verify;
                    let spread = verify / 64 * u32::try_from(self.number % 16).unwrap_or_default();
                    let stream = tokio::time::timeout(verify + spread, self.stream(&mut version, &mut silence)).await;
                    verifies = stream.is_err();
                    was_silent = matches!(stream, Ok(Ended::Silent));
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
            match self.list(&mut String::new(), false).await {
                Ok(_) => return,
                Err(Failure::Answered { code: 429, .. }) if attempt < LIST_ATTEMPTS => retry.wait().await,
                Err(failure) => {
                    let _ = self.report_lost(&failure).await;
                    return;
                }
            }
        }
    }

    /// Reports every object; how many there are, and whether one is newer than `version`, which becomes the one from which to watch then.
    async fn list(&self, version: &mut String, verifies: bool) -> Result<(usize, bool), Failure> {
        let accept = if self.is_metadata() { METADATA_LIST } else { WHOLE };
        let mut pages =
            Pages::new(&self.server, &self.served, &self.target.namespace, "", accept).only(&self.target.name);
        let (mut all, mut has_newer) = (BTreeSet::new(), false);
        // A list that is not only made to verify comes after a time without a watch, and before a core decides about what it reports.
        let mut was_unwatched = !verifies && !version.is_empty();
        while let Some(page) = pages.fetch().await? {
            let items = pages.items(&page)?;
            if std::mem::take(&mut was_unwatched) {
                let _ = self.report(WatchEvent::Unseen).await;
            }
            if is_lower(&pages.version, version) {
                // What this watch has reported is newer than a complete list.
                let _ = self.report(WatchEvent::WentBack).await;
                version.clear();
            }
            for item in items {
                let event = self.present(item.get())?;
                if let WatchEvent::Present { namespace, name, live, .. } = &event {
                    has_newer |= is_lower(version, &live.resource_version);
                    all.insert((namespace.clone(), name.clone()));
                }
                let _ = self.report(event).await;
            }
        }
        version.clone_from(&pages.version);
        let objects = all.len();
        let _ = self.report(WatchEvent::Listed { all, version: pages.version, verifies }).await;
        Ok((objects, has_newer))
    }

    /// Reports changes; returns when a new list is needed, and if earlier watches were silent as soon as this one is not.
    async fn stream(&self, version: &mut String, silence: &mut Silence) -> Ended {
        let accept = if self.is_metadata() { METADATA } else { WHOLE };
        let (mut retry, mut retry_refused) = (Attempts::with(RETRY), Attempts::with(RETRY_REFUSED));
        // Whether the server lists the target but refuses to watch it.
        let mut is_lost = false;
        let mut unwatched_since = Instant::now();
        loop {
            let url = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}{}",
                self.served.url(&self.target.namespace, ""),
                field_selector(&self.target.name)
            );
            let Ok(request) = Request::get(&self.served.kind().kind, &url, accept).into_http() else {
                return Ended::ListNeeded;
            };
            let asked = Instant::now();
            let opened = tokio::time::timeout(
                self.server.timeouts.request,
                self.server.watch_client(self.number).request_stream(request),
            )
            .await;
            let stream = match opened {
                // What has happened meanwhile is not known.
                Ok(Ok(_)) if is_lost => return Ended::ListNeeded,
                Ok(Ok(stream)) => stream,
                Ok(Err(kube::Error::Api(status))) if status.code == 410 => return Ended::ListNeeded,
                Ok(Err(kube::Error::Api(status)))
                    if is_lost || retry.is_longest() || [401, 403].contains(&status.code) =>
                {
                    let failure = Failure::Answered { code: status.code, message: status.message.clone() };
                    if self.sender.is_closed() || (!is_lost && self.report_lost(&failure).await.is_err()) {
                        return Ended::ListNeeded;
                    }
                    is_lost = true;
                    retry_refused.wait().await;
                    continue;
                }
                // A list finds out whether the server can be reached at all.
                _ if retry.is_longest() || asked.elapsed() > SLOW => return Ended::ListNeeded,
                _ => {
                    retry.wait().await;
                    continue;
                }
            };
            let opened = Instant::now();
            if unwatched_since.elapsed() > UNSEEN && self.report(WatchEvent::Unseen).await.is_err() {
                return Ended::ListNeeded;
            }
            let mut lines = pin!(stream.lines());
            loop {
                let line = match tokio::time::timeout(silence.limit(), lines.next()).await {
                    Ok(Some(Ok(line))) => line,
                    Ok(_) => break,
                    // Either the server has gone, or it has nothing newer than our version because its own went back: a list tells.
                    Err(_) => return Ended::Silent,
                };
                // After a line that cannot be read, only a new list is complete.
                let Ok(change) = serde_json::from_str::<Change<'_>>(&line) else { return Ended::ListNeeded };
                let Ok(Object { metadata }) = serde_json::from_str::<Object<'_>>(change.object.get()) else {
                    return Ended::ListNeeded;
                };
                if silence.is_doubted() {
                    return Ended::ListNeeded;
                }
                silence.reported(change.kind);
                *version = metadata.resource_version;
                let event = match change.kind {
                    "ADDED" | "MODIFIED" => match self.present(change.object.get()) {
                        Ok(event) => event,
                        Err(_) => return Ended::ListNeeded,
                    },
                    "DELETED" => WatchEvent::Gone {
                        namespace: metadata.namespace,
                        name: metadata.name,
                        version: version.clone(),
                    },
                    "BOOKMARK" => {
                        silence.bookmarked();
                        continue;
                    }
                    _ => return Ended::ListNeeded,
                };
                if self.report(event).await.is_err() {
                    return Ended::ListNeeded;
                }
            }
            unwatched_since = Instant::now();
            if self.sender.is_closed() || retry.is_longest() {
                return Ended::ListNeeded;
            }
            if opened.elapsed() > WORKED {
                retry.reset();
            } else {
                // A watch that ends right after it was opened is not opened again at once.
                retry.wait().await;
            }
        }
    }

    /// What is reported of a watch that opens and then sends nothing.
    fn silence(&self) -> Failure {
        let seconds = self.server.timeouts.silence.as_secs();
        Failure::Unanswered(format!("the server sends nothing, not even a bookmark, for {seconds} s"))
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

/// Whether a version is lower than another one; those that are no numbers cannot be compared.
fn is_lower(version: &str, other: &str) -> bool {
    let number = |version: &str| version.parse::<u128>().ok();
    number(version).zip(number(other)).is_some_and(|(version, other)| version < other)
}

#[cfg(test)]
mod tests;

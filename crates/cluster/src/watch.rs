//! One watch of one kind, metadata only where that is all we need.

use crate::kinds::Served;
use crate::live::Object;
use crate::request::{Failure, METADATA, METADATA_LIST, Sent, WHOLE, send};
use crate::server::Server;
use catalog::Part;
use change::Live;
use futures::{AsyncBufReadExt, StreamExt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Few enough that a page never costs much memory.
const PAGE: u32 = 100;
/// Some six watch requests an hour; that the server is still there is told by its bookmarks.
const WATCH_SECONDS: u32 = 590;
/// A fresh CRD refuses its first watch and is ready tens of milliseconds later.
const FIRST_RETRY: Duration = Duration::from_millis(30);
/// A server that is gone is not asked more often than this.
const LAST_RETRY: Duration = Duration::from_secs(5);
/// A watch that lived so long was one.
const LIVED: Duration = Duration::from_secs(5);
/// The first and the longest wait after a refusal: only somebody else can help, so it is not asked often.
const RETRY_REFUSED: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// How much of each object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Metadata: it carries managedFields and annotations.
    Metadata,
    /// Names and versions; the rest is dropped as soon as it comes.
    Names,
    /// Of a kind that facts are read from: as little as anything depends on.
    Part,
    /// Everything.
    Whole,
}

impl Content {
    fn is_metadata(self) -> bool {
        matches!(self, Content::Metadata | Content::Names)
    }
}

/// What of an object is told beside its metadata.
#[derive(Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// As much as facts depend on.
    Part(Part),
    /// All of it.
    Whole(Value),
}

/// What a watch saw.
#[derive(Debug)]
pub enum Seen {
    /// An object as it is now.
    Present {
        /// Its namespace, or nothing.
        namespace: String,
        /// Its name.
        name: String,
        /// Its metadata.
        live: Live,
        /// How often its spec was changed.
        generation: i64,
        /// As much of the rest as was asked for.
        body: Body,
    },
    /// An object is gone.
    Gone {
        /// Its namespace, or nothing.
        namespace: String,
        /// Its name.
        name: String,
        /// The version in which it is.
        version: String,
    },
    /// Everything there is was told; what was not named does not exist.
    Listed {
        /// Namespace and name of all there is.
        all: BTreeSet<(String, String)>,
        /// The version in which that is so.
        version: String,
    },
    /// The server cannot be asked now: nothing is known until the next `Listed`.
    Lost {
        /// Why.
        why: String,
        /// Whether it says that it does not serve this at all.
        is_unserved: bool,
    },
}

/// One kind, in one namespace or in all; `P` is what the listener calls it.
pub struct Watch<P> {
    /// The server.
    pub server: Server,
    /// The kind.
    pub served: Served,
    /// Empty for all.
    pub namespace: String,
    /// How much of each object.
    pub content: Content,
    /// The lowest number that no other watch has: it chooses the connection.
    pub number: usize,
    /// What it is called.
    pub place: P,
    /// Who listens.
    pub tell: mpsc::Sender<(P, Seen)>,
}

impl<P: Clone + Send + Sync + 'static> Watch<P> {
    /// Watches until nobody listens any more.
    pub async fn run(self) {
        let (mut pause, mut refused) = (FIRST_RETRY, RETRY_REFUSED.0);
        loop {
            match self.list().await {
                Ok(version) => {
                    refused = RETRY_REFUSED.0;
                    let listed = Instant::now();
                    // Not all at the same moment.
                    let verify = self.server.patience.verify;
                    let spread = verify / 64 * u32::try_from(self.number % 16).unwrap_or_default();
                    let _ = tokio::time::timeout(verify + spread, self.follow(version)).await;
                    if listed.elapsed() > LIVED {
                        pause = FIRST_RETRY;
                    }
                }
                Err(failure) => {
                    // What the server says it serves and does not find is about to come, or to go.
                    let is_unserved = matches!(failure, Failure::Answered { code: 404, .. });
                    let is_refusal = failure.is_refusal() && !is_unserved;
                    if self.say(Seen::Lost { why: failure.to_string(), is_unserved }).await.is_err() {
                        return;
                    }
                    if is_refusal {
                        tokio::time::sleep(refused).await;
                        refused = (refused * 2).min(RETRY_REFUSED.1);
                        continue;
                    }
                }
            }
            if self.tell.is_closed() {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_RETRY);
        }
    }

    /// Tells everything there is; returns the version from which to follow.
    pub(crate) async fn list(&self) -> Result<String, Failure> {
        let base = format!("{}?limit={PAGE}", self.served.url(&self.namespace, ""));
        let accept = if self.content.is_metadata() { METADATA_LIST } else { WHOLE };
        let (mut all, mut url) = (BTreeSet::new(), base.clone());
        loop {
            let text = send(&self.server, Sent::get(&url, accept)).await?;
            let page: Page<'_> = serde_json::from_str(&text)?;
            for item in page.items.unwrap_or_default() {
                let seen = self.present(item.get())?;
                if let Seen::Present { namespace, name, .. } = &seen {
                    all.insert((namespace.clone(), name.clone()));
                }
                let _ = self.say(seen).await;
            }
            if page.metadata.more.is_empty() {
                let version = page.metadata.resource_version;
                let _ = self.say(Seen::Listed { all, version: version.clone() }).await;
                return Ok(version);
            }
            // A token of the server's own: letters, digits, - and _.
            url = format!("{base}&continue={}", page.metadata.more);
        }
    }

    /// Tells what changes; returns when a new list is needed.
    async fn follow(&self, mut version: String) {
        let accept = if self.content.is_metadata() { METADATA } else { WHOLE };
        let mut pause = FIRST_RETRY;
        loop {
            let url = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}",
                self.served.url(&self.namespace, "")
            );
            let Ok(request) = Sent::get(&url, accept).request() else { return };
            let opened = tokio::time::timeout(
                self.server.patience.request,
                self.server.watching(self.number).request_stream(request),
            )
            .await;
            let stream = match opened {
                Ok(Ok(stream)) => stream,
                Ok(Err(kube::Error::Api(status))) if status.code == 410 => return,
                // A list says whether anybody is there at all.
                _ if pause > LAST_RETRY => return,
                _ => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    continue;
                }
            };
            let opened = Instant::now();
            let mut lines = pin!(stream.lines());
            while let Ok(Some(Ok(line))) = tokio::time::timeout(self.server.patience.silence, lines.next()).await {
                // A line that cannot be read leaves us with less than we should know: everything is asked anew.
                let Ok(event) = serde_json::from_str::<Event<'_>>(&line) else { return };
                let Ok(Object { metadata }) = serde_json::from_str::<Object<'_>>(event.object.get()) else { return };
                version = metadata.resource_version;
                let seen = match event.kind {
                    "ADDED" | "MODIFIED" => match self.present(event.object.get()) {
                        Ok(seen) => seen,
                        Err(_) => return,
                    },
                    "DELETED" => {
                        Seen::Gone { namespace: metadata.namespace, name: metadata.name, version: version.clone() }
                    }
                    "BOOKMARK" => continue,
                    _ => return,
                };
                if self.say(seen).await.is_err() {
                    return;
                }
            }
            if self.tell.is_closed() || pause > LAST_RETRY {
                return;
            }
            if opened.elapsed() > LIVED {
                pause = FIRST_RETRY;
            } else {
                // One that ends as soon as it has begun is not opened again at once.
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
    }

    async fn say(&self, seen: Seen) -> Result<(), mpsc::error::SendError<(P, Seen)>> {
        self.tell.send((self.place.clone(), seen)).await
    }

    fn present(&self, text: &str) -> Result<Seen, Failure> {
        let Object { metadata } = serde_json::from_str(text)?;
        let body = match self.content {
            Content::Metadata | Content::Names => Body::None,
            Content::Part => Body::Part(Part::read(&self.served.kind().kind, text)?),
            Content::Whole => Body::Whole(serde_json::from_str(text)?),
        };
        let (namespace, name, generation) = (metadata.namespace.clone(), metadata.name.clone(), metadata.generation);
        // Nodes and definitions are many, large and never ours.
        let live = match self.content {
            Content::Names => metadata.name_and_version(),
            Content::Part if self.served.kind().kind == "Node" => metadata.name_and_version(),
            Content::Metadata | Content::Whole | Content::Part => metadata.live(),
        };
        Ok(Seen::Present { namespace, name, live, generation, body })
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    /// An empty list is null on the wire.
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    more: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

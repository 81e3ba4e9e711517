//! One watch of one kind, metadata only: it carries managedFields and annotations, and that is all we need.

use crate::kinds::Served;
use crate::live::live;
use change::Live;
use futures::StreamExt;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::WatchEvent;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;

/// Few enough that a page never costs much memory.
const PAGE: u32 = 100;
/// Fewer than 15 watch requests an hour.
const WATCH_SECONDS: u32 = 290;
/// The server sends a bookmark about once a minute; no byte for longer than this means that nobody is there.
const SILENCE: Duration = Duration::from_secs(75);
/// A fresh CRD refuses its first watch and is ready tens of milliseconds later.
const FIRST_RETRY: Duration = Duration::from_millis(30);
/// A server that is gone is not asked more often than this.
const LAST_RETRY: Duration = Duration::from_secs(5);

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
    },
    /// An object is gone.
    Gone {
        /// Its namespace, or nothing.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Everything there is was told; what was not named does not exist.
    Listed {
        /// Namespace and name of all there is.
        all: BTreeSet<(String, String)>,
    },
    /// The server cannot be asked now: nothing is known until the next `Listed`.
    Lost {
        /// Why.
        why: String,
    },
}

/// Watches a kind, in one namespace or in all, until nobody listens any more.
pub async fn watch(client: Client, served: Served, namespace: String, tell: mpsc::Sender<Seen>) {
    let mut pause = FIRST_RETRY;
    loop {
        match list(&client, &served, &namespace, &tell).await {
            Ok(version) => {
                pause = FIRST_RETRY;
                follow(&client, &served, &namespace, version, &tell).await;
            }
            Err(error) => {
                if tell.send(Seen::Lost { why: error.to_string() }).await.is_err() {
                    return;
                }
            }
        }
        if tell.is_closed() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_RETRY);
    }
}

/// Tells everything there is; returns the version from which to follow.
async fn list(client: &Client, served: &Served, namespace: &str, tell: &mpsc::Sender<Seen>) -> kube::Result<String> {
    let api = served.api(client, namespace);
    let mut all = BTreeSet::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list_metadata(&params).await?;
        for object in page.items {
            let (namespace, name) = named(&object.metadata);
            all.insert((namespace.clone(), name.clone()));
            let _ = tell.send(Seen::Present { namespace, name, live: live(object.metadata) }).await;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => {
                let _ = tell.send(Seen::Listed { all }).await;
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }
}

/// Tells what changes; returns when a new list is needed.
async fn follow(client: &Client, served: &Served, namespace: &str, mut version: String, tell: &mpsc::Sender<Seen>) {
    let api = served.api(client, namespace);
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let mut pause = FIRST_RETRY;
    loop {
        let stream = match api.watch_metadata(&params, &version).await {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if status.code == 410 => return,
            Err(_) if pause > LAST_RETRY => return,
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
                continue;
            }
        };
        pause = FIRST_RETRY;
        let mut stream = pin!(stream);
        while let Ok(Some(Ok(event))) = tokio::time::timeout(SILENCE, stream.next()).await {
            let seen = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let (namespace, name) = named(&object.metadata);
                    version = object.metadata.resource_version.clone().unwrap_or(version);
                    Seen::Present { namespace, name, live: live(object.metadata) }
                }
                WatchEvent::Deleted(object) => {
                    let (namespace, name) = named(&object.metadata);
                    version = object.metadata.resource_version.unwrap_or(version);
                    Seen::Gone { namespace, name }
                }
                WatchEvent::Bookmark(mark) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(_) => return,
            };
            if tell.send(seen).await.is_err() {
                return;
            }
        }
        if tell.is_closed() {
            return;
        }
    }
}

fn named(metadata: &kube::api::ObjectMeta) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

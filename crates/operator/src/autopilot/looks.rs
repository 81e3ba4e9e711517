//! Looks at whole objects, where what they contain decides.

use super::engine::Engine;
use super::item::{Item, User};
use super::places::Place;
use change::{Key, Live};
use cluster::request::Failure;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// A look that failed is taken again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What was seen.
pub(super) struct Look {
    key: Key,
    /// The version that was known before.
    known: Option<u128>,
    seen: Result<Option<(Live, Value)>, Failure>,
}

/// Those under way.
#[derive(Default)]
pub(super) struct Looks {
    under_way: BTreeSet<Key>,
    pub(super) tasks: JoinSet<Look>,
}

impl Engine {
    /// Looks at what an object contains; afterwards it is decided about again.
    pub(super) fn look_into(&mut self, key: &Key) {
        let Some(served) = self.places.served(&Place::of(key)) else { return };
        if !self.looks.under_way.insert(key.clone()) {
            return;
        }
        let known = self.items.get(key).and_then(Item::version);
        let (server, key) = (self.server.clone(), key.clone());
        self.looks.tasks.spawn(async move {
            let seen = cluster::live::content(&server, &served, &key).await;
            Look { key, known, seen }
        });
    }

    pub(super) fn take_look(&mut self, Look { key, known, seen }: Look) {
        self.looks.under_way.remove(&key);
        let now = (self.settings.clock)().as_millisecond();
        let Some(item) = self.items.get_mut(&key) else { return };
        match seen {
            Ok(Some((live, content))) => {
                let version = live.version();
                item.read(known, Some(live), now);
                let user = User {
                    consent: &self.consent,
                    openings: &self.settings.openings,
                    prune: self.settings.prune,
                    hco_created: self.hco_created,
                };
                item.inspect(&key, user, &content);
                if item.version() == version {
                    self.look_at(&key);
                } else {
                    // Its watch was faster; what it saw is looked at in a while.
                    self.look_later(&key, LOOK_AGAIN);
                }
            }
            // Its watch tells that it is gone.
            Ok(None) => {}
            Err(failure) => {
                tracing::debug!("cannot look at {key}: {failure}");
                self.look_later(&key, LOOK_AGAIN);
            }
        }
    }
}

//! Sends events, one after the other and after the writes: nobody waits for them.

use change::Key;
use cluster::event::Told;
use jiff::Timestamp;
use kube::Client;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// More are not kept: who has so many to tell tells nothing.
const MOST: usize = 1_000;
/// An event waits no longer than this for writes to end.
const PATIENCE: Duration = Duration::from_secs(1);
/// At the end what is still to be told gets this long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An event and the HyperConverged it is filed under.
struct Event {
    regarding: Key,
    uid: String,
    told: Told,
    at: Timestamp,
}

pub(super) struct Teller {
    queue: mpsc::Sender<Event>,
    task: JoinHandle<()>,
}

impl Teller {
    /// Starts telling; `writes` says how many writes are under way.
    pub(super) fn new(client: Client, pod: String, mut writes: watch::Receiver<usize>) -> Teller {
        let (queue, mut events) = mpsc::channel::<Event>(MOST);
        let task = tokio::spawn(async move {
            while let Some(Event { regarding, uid, told, at }) = events.recv().await {
                let _ = tokio::time::timeout(PATIENCE, writes.wait_for(|writes| *writes == 0)).await;
                if let Err(error) = cluster::event::tell(&client, &regarding, &uid, &pod, &told, at).await {
                    tracing::warn!("an event was lost: {error}");
                }
            }
        });
        Teller { queue, task }
    }

    /// Tells something, as soon as there is time for it.
    pub(super) fn tell(&self, regarding: &Key, uid: &str, told: Told, at: Timestamp) {
        let event = Event { regarding: regarding.clone(), uid: uid.to_owned(), told, at };
        if self.queue.try_send(event).is_err() {
            tracing::warn!("an event was lost: {MOST} others wait to be told");
        }
    }

    /// Tells what is left, if that does not take long.
    pub(super) async fn end(self) {
        drop(self.queue);
        let _ = tokio::time::timeout(LAST_WORDS, self.task).await;
    }
}

//! Publishes Kubernetes events one after the other, and only while no writes are due.

use crate::journal::Publication;
use cluster::Server;
use jiff::Timestamp;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Events beyond this are dropped: nobody reads so many.
const QUEUE: usize = 1_000;
/// An event waits no longer than this for the backlog of writes to end.
const WAIT_FOR_WRITES: Duration = Duration::from_secs(1);
/// On stop the queued events get this long.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// A queue of events and the task that publishes them.
pub struct EventPublisher {
    queue: mpsc::Sender<(Publication, Timestamp)>,
    task: JoinHandle<()>,
}

impl EventPublisher {
    /// Starts publishing; `instance` is the reporting pod, `backlog` the number of writes in flight or due.
    pub fn start(server: Server, instance: String, mut backlog: watch::Receiver<usize>) -> EventPublisher {
        let (queue, mut events) = mpsc::channel::<(Publication, Timestamp)>(QUEUE);
        let task = tokio::spawn(async move {
            while let Some((Publication { regarding, uid, event }, at)) = events.recv().await {
                let _ = tokio::time::timeout(WAIT_FOR_WRITES, backlog.wait_for(|backlog| *backlog == 0)).await;
                let published = cluster::event::publish(&server, &regarding, &uid, &instance, &event, at).await;
                if let Err(failure) = published {
                    tracing::warn!(reason = event.reason, "could not publish an event about {regarding}: {failure}");
                }
            }
        });
        EventPublisher { queue, task }
    }

    /// Queues an event; a full queue drops it.
    pub fn publish(&self, publication: Publication, at: Timestamp) {
        if self.queue.try_send((publication, at)).is_err() {
            tracing::warn!("an event was dropped, because {QUEUE} others are waiting to be published");
        }
    }

    /// Publishes what is queued, as far as that is possible in a short time.
    pub async fn close(self) {
        drop(self.queue);
        let mut task = self.task;
        if tokio::time::timeout(LAST_EVENTS, &mut task).await.is_err() {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventPublisher;
    use crate::journal::Publication;
    use crate::test_server::{self, Answer, key};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::sync::watch;

    #[tokio::test]
    async fn events_wait_for_the_backlog_and_are_published_before_the_end() {
        let published = Arc::new(AtomicUsize::new(0));
        let count = published.clone();
        let server = test_server::answering(move |_, _, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Answer::now(201, "{}")
        });
        let (backlog, backlog_reader) = watch::channel(1);
        let publisher = EventPublisher::start(server, "pod".into(), backlog_reader);
        for note in ["one", "two"] {
            let (reason, note) = ("Tested".into(), note.into());
            let event = cluster::event::Event { warning: false, reason, about: None, note };
            publisher.publish(Publication { regarding: key("x"), uid: "u".into(), event }, jiff::Timestamp::UNIX_EPOCH);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(published.load(Ordering::SeqCst), 0, "a write is due");
        backlog.send_replace(0);
        publisher.close().await;
        assert_eq!(published.load(Ordering::SeqCst), 2);
    }
}

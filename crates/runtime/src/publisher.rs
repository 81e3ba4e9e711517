//! Publishes Kubernetes events one after the other, and only while no writes are due.

use cluster::event::Event;
use cluster::{Failure, Server};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

/// Events beyond this are dropped: nobody reads so many.
const QUEUE: usize = 1_000;
/// An event waits no longer than this for the backlog of writes to end.
const WAIT_FOR_WRITES: Duration = Duration::from_secs(1);
/// On stop the queued events get this long.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// The same event within this time is counted as a series instead of published again.
const SERIES: SignedDuration = SignedDuration::from_mins(10);
/// More events are not remembered.
const MOST_REMEMBERED: usize = 32;

/// A queue of events and the task that publishes them.
pub struct EventPublisher {
    /// In boxes, because a queue keeps the memory of many items, whether they are there or not.
    queue: mpsc::Sender<Box<(Event, Timestamp, Span)>>,
    task: JoinHandle<()>,
}

impl EventPublisher {
    /// Starts publishing; `instance` is the reporting pod, `backlog` the number of writes in flight or due.
    pub fn start(server: Server, instance: String, mut backlog: watch::Receiver<usize>) -> EventPublisher {
        let (queue, mut events) = mpsc::channel::<Box<(Event, Timestamp, Span)>>(QUEUE);
        let task = tokio::spawn(async move {
            let mut published = Vec::new();
            while let Some(queued) = events.recv().await {
                let (event, at, trace) = *queued;
                let _ = tokio::time::timeout(WAIT_FOR_WRITES, backlog.wait_for(|backlog| *backlog == 0)).await;
                let (reason, key) = (event.reason.clone(), event.regarding.key.clone());
                let sent = publish(&server, &instance, &mut published, event, at).instrument(trace).await;
                if let Err(failure) = sent {
                    tracing::warn!(reason, "could not publish an event about {key}: {failure}");
                }
            }
        });
        EventPublisher { queue, task }
    }

    /// Queues an event of the current trace; a full queue drops it.
    pub fn publish(&self, event: Event, at: Timestamp) {
        if self.queue.try_send(Box::new((event, at, Span::current()))).is_err() {
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

/// An event that was published.
struct Published {
    event: Event,
    name: String,
    count: u32,
    last: Timestamp,
}

/// Publishes an event, or counts it if the same was published shortly before.
async fn publish(
    server: &Server,
    instance: &str,
    published: &mut Vec<Published>,
    event: Event,
    at: Timestamp,
) -> Result<(), Failure> {
    published.retain(|earlier| at.duration_since(earlier.last) < SERIES);
    if let Some(earlier) = published.iter_mut().find(|earlier| earlier.event == event) {
        (earlier.count, earlier.last) = (earlier.count + 1, at);
        match cluster::event::repeat(server, &event, &earlier.name, earlier.count, at).await {
            // Somebody deleted it.
            Err(failure) if failure.is_not_found() => published.retain(|earlier| earlier.event != event),
            counted => return counted,
        }
    }
    let name = cluster::event::publish(server, instance, &event, at).await?;
    if published.len() == MOST_REMEMBERED {
        published.remove(0);
    }
    published.push(Published { event, name, count: 1, last: at });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::EventPublisher;
    use crate::test_server::{self, Answer};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
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
            publisher.publish(test_server::event(note), jiff::Timestamp::UNIX_EPOCH);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(published.load(Ordering::SeqCst), 0, "a write is due");
        backlog.send_replace(0);
        publisher.close().await;
        assert_eq!(published.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn the_same_event_is_counted_and_published_again_once_it_is_gone() {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let server = test_server::answering(move |method, url, body| {
            let mut seen = seen.lock().unwrap();
            let count = body.split("\"count\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default();
            seen.push(format!("{method} {} {count}", url.rsplit('/').next().unwrap()));
            match seen.len() {
                4 => Answer::now(404, r#"{"kind":"Status","message":"it is gone","reason":"NotFound","code":404}"#),
                _ => Answer::now(201, r#"{"metadata":{"name":"x-1"}}"#),
            }
        });
        let publisher = EventPublisher::start(server, "pod".into(), watch::channel(0).1);
        let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
        for (note, second) in [("one", 0), ("one", 1), ("one", 2), ("one", 3), ("two", 4), ("one", 5), ("one", 700)] {
            publisher.publish(test_server::event(note), at(second));
        }
        publisher.close().await;
        let expected = ["POST events ", "PATCH x-1 2", "PATCH x-1 3", "PATCH x-1 4", "POST events ", "POST events "];
        let requests = requests.lock().unwrap();
        assert_eq!(requests[..6], expected);
        assert_eq!(requests[6..], ["PATCH x-1 2", "POST events "], "a series ends");
    }
}

//! Posts collected spans in batches, one at a time. Only this task ever waits for the collector.

use super::Settings;
use super::collect::Collected;
use super::delivery::{Health, Next, Report, after};
use super::encode::encode;
use super::span::Span;
use cluster::OtherServer;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A batch is posted when it has so many spans,
const LARGEST_BATCH: usize = 512;
/// or this long after its first one.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// One post gets this long.
const TIMEOUT: Duration = Duration::from_secs(10);
/// On stop the queued spans get this long.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// The task that posts.
pub struct Exporter {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// Starts to post what is collected.
    pub fn start(settings: &Settings, collected: Collected) -> anyhow::Result<Exporter> {
        let server = OtherServer::new(&settings.address, settings.headers.clone())?;
        let (stop, stopped) = oneshot::channel();
        let (address, resource) = (settings.address.to_string(), settings.resource.clone());
        let batches = Batches { collected, stopped, is_stopping: false };
        let task = Task { server, address, resource, batches, health: Health::default() };
        Ok(Exporter { stop, task: tokio::spawn(task.run()) })
    }

    /// Posts what is queued, as far as that is possible in a short time.
    pub async fn close(self) {
        // The task may have ended.
        let _ = self.stop.send(());
        let mut task = self.task;
        if tokio::time::timeout(LAST_SPANS, &mut task).await.is_err() {
            task.abort();
        }
    }
}

struct Task {
    server: OtherServer,
    address: String,
    resource: Vec<(String, String)>,
    batches: Batches,
    health: Health,
}

impl Task {
    async fn run(mut self) {
        let mut spans = Vec::new();
        while self.batches.next(&mut spans).await {
            let outcome = self.deliver(&spans).await;
            let undelivered = if outcome.is_err() { spans.len() as u64 } else { 0 };
            let lost = undelivered + self.batches.collected.dropped.swap(0, Ordering::Relaxed);
            let address = &self.address;
            match self.health.after(outcome, lost) {
                Some(Report::Failing(why)) => {
                    tracing::warn!("could not send traces to {address}: {why}; spans are dropped until it works again");
                }
                Some(Report::Recovered { lost }) => {
                    tracing::info!("traces are sent to {address} again; {lost} spans were dropped");
                }
                None => {}
            }
            spans.clear();
        }
    }

    async fn deliver(&mut self, spans: &[Span]) -> Result<(), String> {
        let body = encode(&self.resource, spans);
        for attempt in 0.. {
            match after(attempt, &self.server.post(body.clone(), TIMEOUT).await) {
                Next::Done => break,
                Next::GiveUp(why) => return Err(why),
                Next::RetryAfter(pause) if self.batches.is_stopped_within(pause).await => {
                    return Err("the operator stops".to_owned());
                }
                Next::RetryAfter(_) => {}
            }
        }
        Ok(())
    }
}

/// The collected spans in batches.
struct Batches {
    collected: Collected,
    stopped: oneshot::Receiver<()>,
    is_stopping: bool,
}

impl Batches {
    /// Fills the next batch; false after the last one.
    async fn next(&mut self, spans: &mut Vec<Span>) -> bool {
        if !self.receive(spans).await {
            return false;
        }
        let due = Instant::now() + LONGEST_WAIT;
        while spans.len() < LARGEST_BATCH && !self.is_stopping {
            match tokio::time::timeout_at(due, self.receive(spans)).await {
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
        true
    }

    /// Adds spans as soon as there are any; false after the last ones.
    async fn receive(&mut self, spans: &mut Vec<Span>) -> bool {
        loop {
            let room = LARGEST_BATCH - spans.len();
            tokio::select! {
                biased;
                _ = &mut self.stopped, if !self.is_stopping => self.stop(),
                received = self.collected.spans.recv_many(spans, room) => return received > 0,
            }
        }
    }

    /// Waits; returns early with true if the exporter is to stop.
    async fn is_stopped_within(&mut self, pause: Duration) -> bool {
        if !self.is_stopping && tokio::time::timeout(pause, &mut self.stopped).await.is_ok() {
            self.stop();
        }
        self.is_stopping
    }

    /// Takes no more spans; those in the queue are still there.
    fn stop(&mut self) {
        self.is_stopping = true;
        self.collected.spans.close();
    }
}

#[cfg(test)]
mod tests {
    use super::{Exporter, LAST_SPANS};
    use crate::traces::{Settings, collector};
    use std::time::{Duration, Instant};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::SubscriberExt;

    /// Starts an exporter that has one span in its queue.
    async fn exporter() -> (TcpListener, Exporter) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let flag = format!("http://{}", listener.local_addr().unwrap());
        let headers = |name: &str| (name == "OTEL_EXPORTER_OTLP_HEADERS").then(|| "x-scope=mine".to_owned());
        let settings = Settings::read(Some(&flag), headers, "tester").unwrap().unwrap();
        let (layer, collected) = collector();
        with_default(tracing_subscriber::registry().with(layer), || drop(tracing::info_span!("one")));
        (listener, Exporter::start(&settings, collected).unwrap())
    }

    /// Answers one request and returns it.
    async fn answer(listener: &TcpListener, status: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"]}]}") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "{}", String::from_utf8_lossy(&request));
        }
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    }

    #[tokio::test]
    async fn a_post_is_repeated_if_the_collector_asks_for_it() {
        let (listener, exporter) = exporter().await;
        let first = answer(&listener, "503 Service Unavailable\r\nretry-after: 0").await;
        let second = answer(&listener, "200 OK").await;
        assert_eq!(first, second);
        assert!(first.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{first}");
        let head = first.to_lowercase();
        assert!(
            head.contains("\r\ncontent-type: application/json\r\n") && head.contains("\r\nx-scope: mine\r\n"),
            "{first}"
        );
        assert!(first.contains(r#""name":"one""#), "{first}");
        exporter.close().await;
    }

    #[tokio::test]
    async fn what_is_queued_is_posted_on_stop() {
        let (listener, exporter) = exporter().await;
        let begun = Instant::now();
        let (request, ()) = tokio::join!(answer(&listener, "200 OK"), exporter.close());
        assert!(request.contains(r#""name":"one""#), "{request}");
        assert!(begun.elapsed() < LAST_SPANS);
    }

    #[tokio::test]
    async fn a_collector_that_does_not_answer_does_not_delay_the_stop() {
        let (_listener, exporter) = exporter().await;
        let begun = Instant::now();
        exporter.close().await;
        assert!(begun.elapsed() < LAST_SPANS + Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}

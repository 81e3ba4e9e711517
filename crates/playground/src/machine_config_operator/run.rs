//! The loop of the stand-in: news in, writes out.

use super::cache::{Cache, News};
use super::{Restarts, WATCHED, api, watch, write};
use kube::Client;
use mco_stand_in::{Action, Kind, Snapshot, StandIn, Timing, Write};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A write that failed is made again after this time.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs until it is aborted; reports when the cluster was read.
pub(super) async fn run(client: Client, timing: Timing, restarts: Restarts, log: PathBuf, ready: oneshot::Sender<()>) {
    let (started, mut log) = (Instant::now(), Log::open(log));
    let mut stand_in = StandIn::new(timing, jiff::Timestamp::now());
    let (sender, mut news) = unbounded_channel();
    // Dropping the set ends the watches.
    let mut watches = JoinSet::new();
    for kind in WATCHED {
        watches.spawn(watch::follow(api(&client, kind), kind, sender.clone()));
    }
    let (mut cache, mut ready) = (Cache::default(), Some(ready));
    loop {
        let now = started.elapsed();
        let Some(writes) = cache.snapshot().map(|snapshot| stand_in.step(snapshot, now)) else {
            wait(&mut news, &mut cache, None).await;
            continue;
        };
        if let Some(ready) = ready.take() {
            let _ = ready.send(());
        }
        if let Some(snapshot) = cache.snapshot() {
            publish(&restarts, &stand_in, snapshot);
        }
        if writes.is_empty() {
            let pause = stand_in.wake_at().map(|due| due.saturating_sub(started.elapsed()));
            wait(&mut news, &mut cache, pause).await;
            continue;
        }
        let mut has_failed = false;
        for one in writes {
            let result = write::perform(&client, &one, &mut cache).await;
            log.line(now, &one, result.as_ref().err());
            has_failed |= result.is_err();
        }
        if has_failed {
            // What failed may have changed meanwhile.
            tokio::time::sleep(PAUSE).await;
            wait(&mut news, &mut cache, Some(Duration::ZERO)).await;
        }
    }
}

/// Waits for news, or for a time, and takes all news there are.
async fn wait(news: &mut UnboundedReceiver<(Option<Kind>, News)>, cache: &mut Cache, pause: Option<Duration>) {
    let first = match pause {
        Some(pause) => tokio::time::timeout(pause, news.recv()).await.ok().flatten(),
        None => news.recv().await,
    };
    let mut next = first;
    while let Some((kind, item)) = next {
        cache.take(kind, item);
        next = news.try_recv().ok();
    }
}

fn publish(restarts: &Restarts, stand_in: &StandIn, snapshot: &Snapshot) {
    let counted = snapshot.nodes.keys().map(|name| (name.clone(), stand_in.restarts(name))).collect();
    *restarts.lock().unwrap_or_else(PoisonError::into_inner) = counted;
}

/// A line for every write; a log that cannot be written is not worth a failure.
struct Log(Option<std::fs::File>);

impl Log {
    fn open(path: PathBuf) -> Log {
        Log(std::fs::File::create(path).ok())
    }

    fn line(&mut self, now: Duration, write: &Write, error: Option<&kube::Error>) {
        let (verb, change) = match &write.action {
            Action::Create(_) => ("create", String::new()),
            Action::Patch(patch) => ("patch", patch.to_string()),
            Action::PatchStatus(patch) => ("patch status", patch.to_string()),
            Action::Delete => ("delete", String::new()),
        };
        let result = error.map(|error| format!(" failed: {error}")).unwrap_or_default();
        let (kind, name, seconds) = (write.kind, &write.name, now.as_secs_f64());
        if let Some(file) = &mut self.0 {
            let _ = writeln!(file, "{seconds:.3} {verb} {kind:?} {name} {change}{result}");
        }
    }
}

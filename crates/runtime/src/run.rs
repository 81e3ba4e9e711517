//! The loop of a core: events in, commands out, until it is stopped.

use crate::batch::Batch;
use crate::clock::Clock;
use crate::elsewhere::{Elsewhere, Nowhere};
use crate::journal::Journal;
use crate::publisher::EventPublisher;
use crate::watches::AfterList;
use crate::workers::{Announcement, Workers};
use anyhow::Context;
use change::Moment;
use cluster::{Permit, Server};
use protocol::{Command, Core, Event, Never};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// On stop the writes in flight get this long; a pod is killed some 30 seconds after it was told to stop.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// What a core is run with.
pub struct Hands {
    /// The API server.
    pub server: Server,
    /// Permission to write.
    pub permit: Permit,
    /// The clocks.
    pub clock: Clock,
    /// The pod's name: it is the reporting instance of events.
    pub instance: String,
    /// What the product waits for, as `/readyz` answers it; nothing means ready.
    pub readiness: watch::Sender<Vec<String>>,
}

/// A question about the state of a running core; it is answered between two batches of events.
pub type Question<C> = Box<dyn FnOnce(&C) + Send>;

/// Runs a core that asks nobody but the API server, as [`run_with`] does.
pub async fn run<C>(
    hands: Hands,
    core: C,
    journal: &impl Journal<C::Notice>,
    questions: mpsc::Receiver<Question<C>>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    C: Core<Notice: Send, Request = Never, Answer = Never> + Send + 'static,
{
    run_with(hands, core, journal, &Nowhere, questions, stop).await
}

/// Runs a core until `stop` resolves. Writes in flight are then finished, what is asked elsewhere is not waited for; a task that panics ends
/// the run with an error.
pub async fn run_with<C>(
    hands: Hands,
    mut core: C,
    journal: &impl Journal<C::Notice>,
    elsewhere: &impl Elsewhere<C::Request, C::Answer>,
    mut questions: mpsc::Receiver<Question<C>>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    C: Core<Notice: Send, Request: Send, Answer: Send> + Send + 'static,
{
    let Hands { server, permit, clock, instance, readiness } = hands;
    let mut stop = pin!(stop);
    let (backlog, backlog_reader) = watch::channel(0);
    let publisher = EventPublisher::start(server.clone(), instance, backlog_reader);
    let mut workers = Workers::new(server, Some(permit), AfterList::Follow);
    let record = |notice| {
        for event in journal.record(notice) {
            publisher.publish(event, clock.now().wall);
        }
    };
    let mut batch = Batch::of(Event::Tick);
    loop {
        if !batch.is_empty() {
            let trace = batch.trace();
            let evaluation = batch.evaluation(&trace);
            let commands;
            (core, commands) = handle(core, std::mem::take(&mut batch).events, clock).await?;
            drop(evaluation);
            let _entered = trace.enter();
            for command in commands {
                match workers.start(command, elsewhere, &trace)? {
                    Some(Announcement::Notice(notice)) => record(notice),
                    Some(Announcement::Readiness(missing)) => {
                        readiness.send_replace(missing);
                    }
                    None => {}
                }
            }
            let now = core.backlog();
            backlog.send_if_modified(|before| std::mem::replace(before, now) != now);
        }
        tokio::select! {
            next = workers.next() => batch = next?,
            () = expire(clock, core.wake_at()) => {
                batch.add(Event::Tick);
                workers.add_ready(&mut batch)?;
            }
            Some(question) = questions.recv() => question(&core),
            () = &mut stop => break,
        }
    }
    workers.stop_reading();
    let finish_writes = async {
        while let Some(written) = workers.next_written().await? {
            for command in core.handle(vec![written], clock.now()) {
                // Nothing new is started any more.
                if let Command::Notify(notice) = command {
                    record(notice);
                }
            }
        }
        anyhow::Ok(())
    };
    let finished = tokio::time::timeout(LAST_WRITES, finish_writes).await.unwrap_or_else(|_| {
        tracing::warn!("stopped without the answers to {} writes", workers.writes_in_flight());
        Ok(())
    });
    backlog.send_replace(0);
    publisher.close().await;
    finished
}

/// What a core asks for.
type Commands<C> = Vec<Command<<C as Core>::Notice, <C as Core>::Request>>;

/// Lets the core handle events, in a thread of its own if that may take long.
async fn handle<C>(mut core: C, events: Vec<Event<C::Answer>>, clock: Clock) -> anyhow::Result<(C, Commands<C>)>
where
    C: Core<Notice: Send, Request: Send, Answer: Send> + Send + 'static,
{
    let is_heavy = core.is_heavy(&events);
    let work = move || {
        let commands = core.handle(events, clock.now());
        (core, commands)
    };
    match is_heavy {
        true => tokio::task::spawn_blocking(work).await.context("a decision ended unexpectedly"),
        false => Ok(work()),
    }
}

/// Waits for a timer, or for ever if there is none.
async fn expire(clock: Clock, wake_at: Option<Moment>) {
    match wake_at {
        Some(moment) => tokio::time::sleep(clock.until(moment)).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::{Hands, run};
    use crate::clock::Clock;
    use crate::journal::Journal;
    use crate::test_server::unasked;
    use crate::test_server::{self, Answer, config_maps, key};
    use change::{Effect, Moment, Now, Precondition};
    use cluster::{Server, lease};
    use protocol::{Command, Core, Event, Never, Write};
    use serde_json::json;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::sync::{Notify, watch};

    /// Writes once on the first tick, and asks for another write after every answer.
    #[derive(Default)]
    struct Writer {
        is_started: bool,
        wake_at: Option<Moment>,
    }

    fn write() -> Command<String> {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}});
        let effect = Effect::apply(object, Precondition::None, true);
        let (key, served) = (key("x"), config_maps());
        Command::Write(Box::new(Write { key, served, effect, attempt: 0, backup: None }))
    }

    impl Core for Writer {
        type Notice = String;
        type Request = Never;
        type Answer = Never;

        fn handle(&mut self, events: Vec<Event>, now: Now) -> Vec<Command<String>> {
            let mut commands = Vec::new();
            for event in events {
                match event {
                    Event::Tick if !self.is_started => {
                        self.is_started = true;
                        self.wake_at = Some(now.monotonic.after(Duration::from_millis(1)));
                        commands.push(Command::Readiness(Vec::new()));
                    }
                    Event::Tick => {
                        self.wake_at = None;
                        commands.push(write());
                    }
                    Event::Written(key, outcome) => {
                        commands.push(write());
                        commands.push(Command::Notify(format!("{key}: {}", outcome.is_ok())));
                    }
                    other => panic!("{other:?}"),
                }
            }
            commands
        }

        fn wake_at(&self) -> Option<Moment> {
            self.wake_at
        }

        fn backlog(&self) -> usize {
            1
        }
    }

    /// Remembers notices and publishes each.
    #[derive(Default)]
    struct Notices(Mutex<Vec<String>>);

    impl Journal<String> for Notices {
        fn record(&self, notice: String) -> Vec<cluster::event::Event> {
            self.0.lock().unwrap().push(notice.clone());
            vec![test_server::event(&notice)]
        }
    }

    fn hands(server: Server, readiness: watch::Sender<Vec<String>>) -> Hands {
        let (permit, clock) = (lease::without_election(), Clock::start());
        Hands { server, permit, clock, instance: "pod".into(), readiness }
    }

    const WRITTEN: &str = r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"2"}}"#;

    #[tokio::test]
    async fn a_write_in_flight_is_finished_and_reported_on_stop_and_nothing_new_is_started() {
        let (requests, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (seen, stopper) = (requests.clone(), stop.clone());
        let server = test_server::answering(move |method, url, _| {
            seen.lock().unwrap().push(format!("{method} {}", url.split('?').next().unwrap_or_default()));
            // The stop arrives while the server is still busy with the write.
            stopper.notify_one();
            Answer { after: Duration::from_millis(50), code: 200, body: WRITTEN.into() }
        });
        let (notices, (readiness, missing)) = (Notices::default(), watch::channel(vec!["something".to_owned()]));
        run(hands(server, readiness), Writer::default(), &notices, unasked(), stop.notified()).await.unwrap();
        assert_eq!(*notices.0.lock().unwrap(), ["ConfigMap n/x: true"]);
        let requests = requests.lock().unwrap();
        assert_eq!(
            *requests,
            ["PATCH /api/v1/namespaces/n/configmaps/x", "POST /apis/events.k8s.io/v1/namespaces/n/events"]
        );
        assert!(missing.borrow().is_empty());
    }

    /// Decides until somebody ends it.
    struct Thinker {
        end: std::sync::mpsc::Receiver<()>,
    }

    impl Core for Thinker {
        type Notice = String;
        type Request = Never;
        type Answer = Never;

        fn handle(&mut self, _: Vec<Event>, _: Now) -> Vec<Command<String>> {
            self.end.recv().unwrap();
            Vec::new()
        }

        fn is_heavy(&self, _: &[Event]) -> bool {
            true
        }

        fn wake_at(&self) -> Option<Moment> {
            None
        }

        fn backlog(&self) -> usize {
            0
        }
    }

    #[tokio::test]
    async fn nothing_else_waits_for_a_long_decision() {
        let server = test_server::answering(|_, _, _| panic!("no request is expected"));
        let (hands, notices) = (hands(server, watch::channel(Vec::new()).0), Notices::default());
        let (ender, end) = std::sync::mpsc::channel();
        // On the same thread: it would never run if the decision kept the thread.
        let other = tokio::spawn(async move { ender.send(()).unwrap() });
        run(hands, Thinker { end }, &notices, unasked(), async { other.await.unwrap() }).await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_panics_ends_the_run_with_an_error() {
        let server = test_server::answering(|_, _, _| panic!("a mistake in a task"));
        let (hands, notices) = (hands(server, watch::channel(Vec::new()).0), Notices::default());
        let ran = run(hands, Writer::default(), &notices, unasked(), std::future::pending());
        assert_eq!(ran.await.unwrap_err().to_string(), "a write ended unexpectedly");
    }
}

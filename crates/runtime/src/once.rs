//! Evaluates a core over one listing: nothing is followed and nothing is written.

use crate::batch::Trace;
use crate::clock::Clock;
use crate::elsewhere::{Elsewhere, Nowhere};
use crate::journal::Journal;
use crate::watches::AfterList;
use crate::workers::{Announcement, Workers};
use anyhow::bail;
use cluster::Server;
use protocol::{Core, Event, Never, WatchEvent, WatchTarget};
use std::collections::BTreeMap;
use std::time::Duration;

/// A timer that expires later than this is not waited for.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// So many timers are waited for, so that a core which polls comes to an end.
const MOST_TICKS: u32 = 20;

/// A target that could not be listed, so that the evaluation may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted {
    /// The target.
    pub target: WatchTarget,
    /// Why.
    pub why: String,
}

/// Runs a core until it asks for nothing more; returns the targets that could not be listed.
///
/// The core must be configured not to write: a write is an error.
pub async fn evaluate<C: Core<Request = Never, Answer = Never>>(
    server: &Server,
    core: &mut C,
    journal: &impl Journal<C::Notice>,
) -> anyhow::Result<Vec<Unlisted>> {
    evaluate_with(server, core, journal, &Nowhere).await
}

/// As [`evaluate`], for a core that also asks elsewhere.
pub async fn evaluate_with<C: Core<Answer: Send + 'static>>(
    server: &Server,
    core: &mut C,
    journal: &impl Journal<C::Notice>,
    elsewhere: &impl Elsewhere<C::Request, C::Answer>,
) -> anyhow::Result<Vec<Unlisted>> {
    let (clock, mut ticks) = (Clock::start(), 0);
    let mut workers = Workers::new(server.clone(), None, AfterList::End);
    let mut problems = Problems::default();
    let mut events = vec![Event::Tick];
    loop {
        events.iter().for_each(|event| problems.note(event));
        if !events.is_empty() {
            for command in core.handle(std::mem::take(&mut events), clock.now()) {
                if let Some(Announcement::Notice(notice)) = workers.start(command, elsewhere, &Trace::none())? {
                    // Kubernetes events are writes, so none is published.
                    let _ = journal.record(notice);
                }
            }
        }
        if !workers.is_idle() {
            events = workers.next().await?.events;
            continue;
        }
        let wait = core.wake_at().map(|moment| clock.until(moment)).filter(|wait| *wait <= LONGEST_WAIT);
        let Some(wait) = wait.filter(|_| ticks < MOST_TICKS) else { break };
        ticks += 1;
        tokio::time::sleep(wait).await;
        events.push(Event::Tick);
    }
    if let Some(why) = problems.discovery {
        bail!("could not ask the API server at {} what it serves: {why}", server.address);
    }
    Ok(problems.unlisted.into_iter().map(|(target, why)| Unlisted { target, why }).collect())
}

/// What kept the core from seeing everything.
#[derive(Default)]
struct Problems {
    discovery: Option<String>,
    unlisted: BTreeMap<WatchTarget, String>,
}

impl Problems {
    fn note<A>(&mut self, event: &Event<A>) {
        match event {
            Event::Discovered(discovered) => self.discovery = discovered.as_ref().err().cloned(),
            Event::Watched(target, WatchEvent::Lost { why, .. }) => {
                self.unlisted.insert(target.clone(), why.clone());
            }
            Event::Watched(target, WatchEvent::Listed { .. }) => {
                self.unlisted.remove(target);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{evaluate, evaluate_with};
    use crate::elsewhere::Elsewhere;
    use crate::journal::Discard;
    use crate::test_server::{self, Answer, config_maps, key};
    use change::{Effect, Moment, Now};
    use protocol::{Command, Content, Core, Event, Never, WatchEvent, WatchTarget, Write};
    use std::time::Duration;

    /// Lists ConfigMaps in two namespaces on the second tick, and remembers what it was told.
    #[derive(Default)]
    struct Lister {
        wake_at: Option<Moment>,
        seen: Vec<String>,
    }

    impl Core for Lister {
        type Notice = ();
        type Request = Never;
        type Answer = Never;

        fn handle(&mut self, events: Vec<Event>, now: Now) -> Vec<Command<()>> {
            let mut commands = Vec::new();
            for event in events {
                match event {
                    Event::Tick if self.wake_at.is_none() => {
                        self.wake_at = Some(now.monotonic.after(Duration::from_millis(5)));
                    }
                    Event::Tick => {
                        // Too far away to be waited for.
                        self.wake_at = Some(now.monotonic.after(Duration::from_secs(3600)));
                        for namespace in ["open", "closed"] {
                            let target = WatchTarget { namespace: namespace.into(), ..target() };
                            commands.push(Command::Watch { target, served: config_maps(), content: Content::Metadata });
                        }
                    }
                    Event::Watched(_, WatchEvent::Present { name, .. }) => self.seen.push(name),
                    Event::Watched(target, WatchEvent::Listed { all, .. }) => {
                        self.seen.push(format!("{} in {}", all.len(), target.namespace));
                    }
                    _ => {}
                }
            }
            commands
        }

        fn wake_at(&self) -> Option<Moment> {
            self.wake_at
        }

        fn backlog(&self) -> usize {
            0
        }
    }

    fn target() -> WatchTarget {
        WatchTarget::all("v1", "ConfigMap")
    }

    #[tokio::test]
    async fn every_target_is_listed_once_and_those_that_cannot_be_are_returned() {
        let server = test_server::answering(|_, url, _| {
            assert!(!url.contains("watch=true"), "{url}");
            if url.contains("/closed/") {
                return Answer::now(403, r#"{"message":"no","code":403,"status":"Failure"}"#);
            }
            // Two pages.
            if url.contains("continue=more") {
                return Answer::now(200, r#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"b"}}]}"#);
            }
            let page = r#"{"metadata":{"resourceVersion":"9","continue":"more"},"items":[{"metadata":{"name":"a"}}]}"#;
            Answer::now(200, page)
        });
        let mut core = Lister::default();
        let unlisted = evaluate(&server, &mut core, &Discard).await.unwrap();
        assert_eq!(core.seen, ["a", "b", "2 in open"]);
        assert_eq!(unlisted.len(), 1);
        let missing = "no; add this rule to the role: {apiGroups: [\"\"], resources: [\"configmaps\"], verbs: [\"list\", \"watch\"]}";
        assert_eq!((unlisted[0].target.namespace.as_str(), unlisted[0].why.as_str()), ("closed", missing));
    }

    /// Asks for the doubles of two numbers, and remembers the answers.
    #[derive(Default)]
    struct Asker {
        is_started: bool,
        answers: Vec<(u64, u32)>,
    }

    impl Core for Asker {
        type Notice = ();
        type Request = u32;
        type Answer = u32;

        fn handle(&mut self, events: Vec<Event<u32>>, _: Now) -> Vec<Command<(), u32>> {
            for event in events {
                if let Event::Elsewhere(number, answer) = event {
                    self.answers.push((number, answer));
                }
            }
            if std::mem::replace(&mut self.is_started, true) {
                return Vec::new();
            }
            vec![Command::Elsewhere(1, 10), Command::Elsewhere(2, 20)]
        }

        fn wake_at(&self) -> Option<Moment> {
            None
        }

        fn backlog(&self) -> usize {
            0
        }
    }

    struct Doubling;

    impl Elsewhere<u32, u32> for Doubling {
        fn carry_out(&self, request: u32) -> impl Future<Output = u32> + Send + 'static {
            std::future::ready(request * 2)
        }
    }

    #[tokio::test]
    async fn what_is_asked_elsewhere_is_answered_with_its_number() {
        let mut core = Asker::default();
        evaluate_with(&test_server::silent(), &mut core, &Discard, &Doubling).await.unwrap();
        core.answers.sort_unstable();
        assert_eq!(core.answers, [(1, 20), (2, 40)]);
    }

    #[tokio::test]
    async fn a_target_with_a_name_lists_that_object_only() {
        let server = test_server::answering(|_, url, _| {
            assert!(url.contains("fieldSelector=metadata.name%3Dx"), "{url}");
            Answer::now(200, r#"{"metadata":{"resourceVersion":"9"},"items":[]}"#)
        });
        let watch =
            Command::Watch { target: WatchTarget::only(&key("x")), served: config_maps(), content: Content::Names };
        assert_eq!(evaluate(&server, &mut One(Some(watch)), &Discard).await.unwrap(), []);
    }

    /// Asks for one command and nothing else.
    struct One(Option<Command<()>>);

    impl Core for One {
        type Notice = ();
        type Request = Never;
        type Answer = Never;

        fn handle(&mut self, _: Vec<Event>, _: Now) -> Vec<Command<()>> {
            self.0.take().into_iter().collect()
        }

        fn wake_at(&self) -> Option<Moment> {
            None
        }

        fn backlog(&self) -> usize {
            0
        }
    }

    #[tokio::test]
    async fn a_write_is_an_error() {
        let (key, served) = (key("x"), config_maps());
        let effect = Effect::Delete { uid: "u".into(), resource_version: "1".into() };
        let write = Write { key, served, effect, attempt: 0, backup: None };
        let outcome = evaluate(&test_server::silent(), &mut One(Some(Command::Write(write.into()))), &Discard).await;
        assert_eq!(outcome.unwrap_err().to_string(), "a core that must not write asked to write ConfigMap n/x");
    }

    #[tokio::test]
    async fn a_server_that_does_not_say_what_it_serves_is_an_error() {
        let server = test_server::answering(|_, _, _| Answer::now(500, "broken"));
        let error = evaluate(&server, &mut One(Some(Command::Discover { tag: None })), &Discard).await.unwrap_err();
        assert!(error.to_string().starts_with("could not ask the API server at test what it serves"), "{error}");
    }
}

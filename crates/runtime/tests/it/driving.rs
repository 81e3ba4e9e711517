//! A small core that is run and evaluated on a real server.

use super::{config_map, desired, start};
use change::{Effect, Moment, Now, Precondition};
use cluster::event::Event as KubernetesEvent;
use cluster::lease;
use protocol::{Command, Content, Core, Discovered, Event, Kinds, Never, Search, WatchEvent, WatchTarget, Write};
use runtime::{Clock, Discard, Hands, Journal};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Keeps one ConfigMap if it may write, and reports everything it receives about it.
struct Keeper {
    writes: bool,
    kinds: Kinds,
    seen: Vec<String>,
}

impl Keeper {
    fn new(writes: bool) -> Keeper {
        Keeper { writes, kinds: Kinds::default(), seen: Vec::new() }
    }

    fn take(&mut self, event: Event, commands: &mut Vec<Command<String>>) {
        let key = config_map("kept");
        let mut note = |text: String| {
            self.seen.push(text.clone());
            commands.push(Command::Notify(text));
        };
        match event {
            Event::Tick => commands.push(Command::Discover { tag: None }),
            Event::Discovered(Ok(Discovered::All(kinds))) => {
                self.kinds = kinds;
                let served = self.kinds.find(&key.kind).unwrap();
                let target = WatchTarget::of(&key);
                commands.push(Command::Watch { target, served, content: Content::Metadata });
                commands.push(Command::Discover { tag: Some(self.kinds.tag().to_owned()) });
            }
            Event::Discovered(Ok(Discovered::Unchanged)) => note("unchanged".into()),
            Event::Watched(_, WatchEvent::Listed { all, .. }) => {
                let served = self.kinds.find(&key.kind).unwrap();
                let is_there = all.contains(&(key.namespace.clone(), key.name.clone()));
                note(format!("listed, present: {is_there}"));
                if self.writes {
                    let (object, precondition) = (desired("kept", "1"), Precondition::Absent);
                    let effect = Effect::apply(object, precondition, true);
                    let write = Write { key, served, effect, attempt: 0, backup: None };
                    commands.push(Command::Write(write.into()));
                } else {
                    commands.push(Command::Search { search: Search::Label(WatchTarget::of(&key)), served });
                }
            }
            Event::Watched(_, WatchEvent::Present { name, .. }) if name == key.name => note("present".into()),
            Event::Watched(_, WatchEvent::Gone { name, .. }) if name == key.name => note("gone".into()),
            Event::Written(_, outcome) => {
                let live = outcome.unwrap().live.unwrap();
                note("written".into());
                let served = self.kinds.find(&key.kind).unwrap();
                let (uid, resource_version) = (live.uid, live.resource_version);
                let effect = Effect::Delete { uid, resource_version };
                if self.writes {
                    self.writes = false;
                    let write = Write { key, served, effect, attempt: 0, backup: None };
                    commands.push(Command::Write(write.into()));
                }
            }
            Event::Found(_, found) => note(format!("found {}", found.unwrap().len())),
            Event::Watched(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

impl Core for Keeper {
    type Notice = String;
    type Request = Never;
    type Answer = Never;

    fn handle(&mut self, events: Vec<Event>, _: Now) -> Vec<Command<String>> {
        let mut commands = Vec::new();
        for event in events {
            // A deletion has no object to answer with.
            if let Event::Written(_, Ok(written)) = &event
                && written.live.is_none()
            {
                continue;
            }
            self.take(event, &mut commands);
        }
        commands
    }

    fn wake_at(&self) -> Option<Moment> {
        None
    }

    fn backlog(&self) -> usize {
        0
    }
}

struct Forward(mpsc::UnboundedSender<String>);

impl Journal<String> for Forward {
    fn record(&self, notice: String) -> Vec<KubernetesEvent> {
        let _ = self.0.send(notice);
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_is_evaluated_over_one_listing_and_run_until_it_is_stopped() {
    let (_playground, server) = start().await;

    let mut evaluated = Keeper::new(false);
    let unlisted = runtime::evaluate(&server, &mut evaluated, &Discard).await.unwrap();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    evaluated.seen.sort();
    assert_eq!(evaluated.seen, ["found 0", "listed, present: false", "unchanged"]);

    let (sender, mut notices) = mpsc::unbounded_channel();
    let readiness = watch::channel(Vec::new()).0;
    let (permit, clock) = (lease::without_election(), Clock::start());
    let hands = Hands { server, permit, clock, instance: "pod".into(), readiness };
    let stop = async {
        let mut seen = Vec::new();
        while !seen.contains(&"gone".to_owned()) {
            seen.push(notices.recv().await.unwrap());
        }
        assert!(seen.contains(&"present".to_owned()) && seen.contains(&"written".to_owned()), "{seen:?}");
    };
    let journal = Forward(sender);
    let ran = runtime::run(hands, Keeper::new(true), &journal, mpsc::channel(1).1, stop);
    tokio::time::timeout(Duration::from_secs(30), ran).await.unwrap().unwrap();
}

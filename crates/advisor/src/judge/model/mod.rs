//! All that can happen to small worlds, to a fixed depth: objects that depend on each other or replace one another, an input, an upgrade, a person
//! who edits everything, rolls back and bypasses the lock, a server that refuses, pools that are not ready, and a process that ends between any two
//! steps.

mod events;
mod lawful;
mod promises;
mod world;

use super::MOST_CORRECTIONS;
use api::advisor::Phase;
use events::{Cause, Event};
use lawful::{PHASES, Transition};
use std::collections::BTreeSet;
use world::{FOUND, NODES, Pool, SETTINGS, Scene, Step, World};

/// The advisor alone takes no more steps than these between two events.
const STEPS: usize = 12;
/// More worlds after one event take too long.
const MOST_WORLDS: usize = 120_000;

/// What was found.
#[derive(Debug, Default)]
struct Found {
    visited: BTreeSet<World>,
    judgements: u64,
    writes: u64,
    transitions: BTreeSet<Transition>,
}

/// How the advisor came to rest.
#[derive(Default)]
struct Way {
    /// Every world on the way is one in which the process may end.
    worlds: Vec<World>,
    writes: u64,
    transitions: Vec<Transition>,
}

impl World {
    /// Runs the advisor until it rests.
    fn settle(mut self, mut cause: Cause, way: &mut Way) -> World {
        let mut is_published = false;
        for _ in 0..STEPS {
            let (next, writes) = match self.step() {
                None => {
                    self.check_rest();
                    return self;
                }
                Some(Step::Published(next)) => {
                    // What was replaced is shown as gone, and then no more.
                    let is_left_out = self.memory.items.len() > next.memory.items.len();
                    assert!(
                        !is_published || is_left_out,
                        "it publishes twice what it knew at once: {self:#?}\n{next:#?}"
                    );
                    is_published = true;
                    (next, 0)
                }
                Some(Step::Wrote(next)) => {
                    is_published = false;
                    let writes = u64::from(next.objects != self.objects);
                    (next, writes)
                }
                Some(Step::Forgot(next)) => {
                    is_published = false;
                    (next, 0)
                }
            };
            if let (Some(from), Some(to)) = (self.phase, next.phase)
                && from != to
            {
                way.transitions.push(Transition { from, to, cause });
            }
            if writes > 0 || next.outcomes != self.outcomes {
                cause = Cause::Write;
            }
            way.writes += writes;
            way.worlds.push(self);
            self = next;
        }
        panic!("it does not settle: {self:#?}\n{:#?}", self.judge());
    }
}

/// Says which events led to a failure.
struct Trail<'a>(Scene, &'a [Event], Event);

impl Drop for Trail<'_> {
    #[expect(clippy::disallowed_macros, reason = "a test that fails prints what led to it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the scene {:?}, after {:?}: {:?}", self.0, self.1, self.2);
        }
    }
}

/// Explores everything that can happen to a world in so many events.
fn explore(found: &mut Found, start: World, depth: usize) {
    let scene = start.scene;
    let events = scene.events();
    // What others have visited they may not have followed as far.
    let mut visited = BTreeSet::new();
    let mut frontier: Vec<(World, Vec<Event>)> = vec![(start, Vec::new())];
    for at in 0..depth {
        let mut next = Vec::new();
        for (world, trail) in std::mem::take(&mut frontier) {
            for event in events.iter().copied() {
                let _trail = Trail(scene, &trail, event);
                let mut way = Way::default();
                let settled = world.after(event).settle(event.cause(), &mut way);
                found.judgements += way.worlds.len() as u64 + 1;
                found.writes += way.writes;
                found.transitions.extend(way.transitions);
                // The process ends between two steps: what it goes on to is what it would have come to.
                for interrupted in way.worlds.iter().filter(|_| at < 3) {
                    let again = interrupted.after(Event::Restart).settle(Cause::Time, &mut Way::default());
                    assert_eq!(again.objects, settled.objects, "{event:?} {interrupted:#?}");
                    assert_eq!(again.phase, settled.phase, "{event:?} {interrupted:#?}");
                }
                if visited.insert(settled.clone()) {
                    next.push((settled, [trail.as_slice(), &[event]].concat()));
                }
            }
        }
        frontier = next;
        assert!(frontier.len() <= MOST_WORLDS, "too many to follow: {} after {} events", frontier.len(), at + 1);
    }
    found.visited.append(&mut visited);
}

/// A world after these events.
fn after(scene: Scene, events: &[Event]) -> World {
    let start = World::new(scene).settle(Cause::Facts, &mut Way::default());
    events.iter().fold(start, |world, event| world.after(*event).settle(event.cause(), &mut Way::default()))
}

#[test]
#[expect(clippy::disallowed_macros, reason = "a test shows how large it is")]
fn everything_that_can_happen_settles_and_never_writes_what_was_not_approved() {
    let mut found = Found::default();
    explore(&mut found, after(Scene::Independent, &[]), 4);
    // Somebody insists on other values.
    let often = [&[Event::Correct, Event::ApproveShown][..], &[Event::Edit(SETTINGS); MOST_CORRECTIONS]].concat();
    explore(&mut found, after(Scene::Independent, &often), 2);
    for scene in [Scene::Needs, Scene::Replaces] {
        explore(&mut found, after(scene, &[]), 3);
        explore(&mut found, after(scene, &[Event::ApproveShown, Event::Pool(Pool::Ready)]), 3);
        explore(&mut found, after(scene, &[Event::CloseWindow, Event::ApproveShown]), 2);
        // What waits for a window is written when it opens, and what was refused is not tried again while it is held.
        let opened = after(scene, &[Event::CloseWindow, Event::ApproveShown, Event::Hour, Event::Hour]);
        assert_ne!(opened.objects[NODES], FOUND, "{opened:#?}");
        for held in [Event::CloseWindow, Event::Pool(Pool::Degraded)] {
            after(scene, &[Event::Refuse(NODES), Event::ApproveShown, held, Event::Hour]);
        }
    }
    let size = (found.visited.len(), found.judgements, found.writes);
    println!("{} worlds, {} judgements, {} writes", size.0, size.1, size.2);
    assert!(found.visited.len() >= 140_000, "the model got smaller: {size:?} worlds, judgements, writes");
    assert!(found.judgements >= 480_000, "the model got smaller: {size:?} worlds, judgements, writes");
    assert!(found.writes >= 13_000, "the model got smaller: {size:?} worlds, judgements, writes");
    let phases: BTreeSet<Phase> = found.transitions.iter().map(|transition| transition.to).collect();
    assert_eq!(phases, PHASES.into(), "every published phase is reached");
    lawful::check(&found.transitions);
}

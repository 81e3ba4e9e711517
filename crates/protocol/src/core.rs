//! A product's decisions as one state machine that never touches the world.

use crate::command::Command;
use crate::event::Event;
use change::{Moment, Now};

/// What does not exist: the requests of a core that asks nobody but the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {}

/// A state machine: events in, commands out. It has no clock, no sockets and no randomness.
pub trait Core {
    /// What it has to report; a journal turns it into log lines, events and metrics.
    type Notice;
    /// What it asks for elsewhere than at the API server; [`Never`] if nothing.
    type Request;
    /// The answer to that.
    type Answer;

    /// Takes what has happened and says what to do. Events that arrive together are handled together, so that a burst is one change.
    fn handle(&mut self, events: Vec<Event<Self::Answer>>, now: Now) -> Vec<Command<Self::Notice, Self::Request>>;

    /// Whether [`Core::handle`] may take long with these events, because an object is large: then it gets a thread of its own, so that
    /// probes and the lease do not wait for it.
    fn is_heavy(&self, _events: &[Event<Self::Answer>]) -> bool {
        false
    }

    /// When to call [`Core::handle`] again if no event arrives before.
    fn wake_at(&self) -> Option<Moment>;

    /// How many writes are in flight or due: Kubernetes events are published once there are none.
    fn backlog(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::{Core, Never};
    use crate::{Command, Event};
    use change::{Moment, Now};

    struct Idle;

    impl Core for Idle {
        type Notice = ();
        type Request = Never;
        type Answer = Never;

        fn handle(&mut self, _: Vec<Event>, _: Now) -> Vec<Command<()>> {
            Vec::new()
        }

        fn wake_at(&self) -> Option<Moment> {
            None
        }

        fn backlog(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_core_is_not_heavy_by_default() {
        assert!(!Idle.is_heavy(&[]));
    }
}

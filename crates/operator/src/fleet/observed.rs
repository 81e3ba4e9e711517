//! The core of the fleet, with metrics of the objects that its watches report.

use crate::metrics::Metrics;
use change::{Moment, Now};
use fleet::outside::{Answer, Request};
use fleet::{Core, Notice};
use protocol::{Command, Event};
use std::sync::Arc;

/// The core, and who counts what there is.
pub(super) struct Observed {
    pub(super) core: Core,
    pub(super) metrics: Arc<Metrics>,
}

impl protocol::Core for Observed {
    type Notice = Notice;
    type Request = Request;
    type Answer = Answer;

    fn handle(&mut self, events: Vec<Event<Answer>>, now: Now) -> Vec<Command<Notice, Request>> {
        for event in &events {
            if let Event::Watched(target, event) = event {
                self.metrics.observe_fleet(target, event);
            }
        }
        self.core.handle(events, now)
    }

    fn is_heavy(&self, events: &[Event<Answer>]) -> bool {
        self.core.is_heavy(events)
    }

    fn wake_at(&self) -> Option<Moment> {
        self.core.wake_at()
    }

    fn backlog(&self) -> usize {
        self.core.backlog()
    }
}

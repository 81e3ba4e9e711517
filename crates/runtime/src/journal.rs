//! Where a product turns its notices into log lines, metrics and Kubernetes events.

use change::Key;
use cluster::event::Event;

/// Records what a core reports.
pub trait Journal<N> {
    /// Logs and counts a notice; returns the Kubernetes event to publish, if there is one.
    fn record(&self, notice: N) -> Option<Publication>;
}

/// A Kubernetes event and the object it regards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The object.
    pub regarding: Key,
    /// Its uid.
    pub uid: String,
    /// The event.
    pub event: Event,
}

/// Records nothing, for an evaluation whose result is read from the core.
#[derive(Debug, Clone, Copy)]
pub struct Discard;

impl<N> Journal<N> for Discard {
    fn record(&self, _: N) -> Option<Publication> {
        None
    }
}

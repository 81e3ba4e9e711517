//! Where a product turns its notices into log lines, metrics and Kubernetes events.

use cluster::event::Event;

/// Records what a core reports.
pub trait Journal<N> {
    /// Logs and counts a notice; returns the Kubernetes events to publish.
    fn record(&self, notice: N) -> Vec<Event>;
}

/// Records nothing, for an evaluation whose result is read from the core.
#[derive(Debug, Clone, Copy)]
pub struct Discard;

impl<N> Journal<N> for Discard {
    fn record(&self, _: N) -> Vec<Event> {
        Vec::new()
    }
}

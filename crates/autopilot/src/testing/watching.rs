//! What happens to the watches that the core has opened on the model.

use crate::testing::bed::TestBed;
use protocol::{Event, WatchTarget};
use server_model::server::ApiServer;
use server_model::watching::OpenWatch;

impl TestBed {
    /// Somebody restores the server as it was: its versions go back, and every watch lists again.
    pub(crate) fn restore(&mut self, before: &ApiServer) {
        self.server.restore(before);
        for watch in self.watches.values_mut() {
            watch.go_back();
        }
    }

    /// The next report of a watch, if there is one.
    pub(crate) fn next_event(&mut self, target: &WatchTarget) -> Option<Event> {
        let event = self.watches.get_mut(target)?.next(target, &self.server)?;
        Some(Event::Watched(target.clone(), event))
    }

    /// The server does not answer a watch of this kind any more, until [`TestBed::restore_watch`].
    pub(crate) fn lose_watch(&mut self, kind: &str) {
        for (_, watch) in self.watches.iter_mut().filter(|(target, _)| target.kind.kind == kind) {
            watch.lose();
        }
    }

    /// The watch of a kind lists again, after [`TestBed::lose_watch`] or without a report that it was lost.
    pub(crate) fn restore_watch(&mut self, kind: &str) {
        for (_, watch) in self.watches.iter_mut().filter(|(target, _)| target.kind.kind == kind) {
            watch.list_again();
        }
    }

    /// A day has passed: the watches list again to verify what is known.
    pub(crate) fn verify(&mut self) {
        self.watches.values_mut().for_each(OpenWatch::verify);
    }
}

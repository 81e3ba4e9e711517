//! The watches that the core has opened on the model.

use crate::testing::bed::TestBed;
use crate::testing::server::ApiServer;
use crate::testing::serving::report;
use protocol::{Content, Event, WatchEvent, WatchTarget};
use std::collections::VecDeque;

/// An open watch.
#[derive(Debug)]
pub(crate) struct OpenWatch {
    content: Content,
    progress: Progress,
    /// What it reports before it goes on.
    queue: VecDeque<WatchEvent>,
    /// The last report, which a fault may repeat.
    last: Option<WatchEvent>,
    /// Whether it has listed before.
    has_listed: bool,
}

#[derive(Debug)]
enum Progress {
    /// It lists next.
    Unlisted,
    /// It lists next, because a day has passed.
    Verifying,
    /// It has reported the log of the server up to this entry.
    Following(usize),
    /// It has reported that the kind is not served.
    Unserved,
    /// It cannot reach the server.
    Down,
}

impl OpenWatch {
    pub(crate) fn new(content: Content) -> OpenWatch {
        OpenWatch { content, progress: Progress::Unlisted, queue: VecDeque::new(), last: None, has_listed: false }
    }

    /// The next report, if there is one.
    pub(crate) fn next(&mut self, target: &WatchTarget, server: &ApiServer) -> Option<WatchEvent> {
        let next = self.find_next(target, server);
        if let Some(event) = &next {
            self.last = Some(event.clone());
        }
        next
    }

    fn find_next(&mut self, target: &WatchTarget, server: &ApiServer) -> Option<WatchEvent> {
        if let Some(event) = self.queue.pop_front() {
            return Some(event);
        }
        let is_served = server.serves(&target.kind);
        match self.progress {
            Progress::Unlisted | Progress::Verifying | Progress::Unserved if is_served => {
                let verifies = matches!(self.progress, Progress::Verifying);
                if std::mem::replace(&mut self.has_listed, true) && !verifies {
                    self.queue.push_back(WatchEvent::Unseen);
                }
                self.queue.extend(server.listing(target, self.content, verifies));
                self.progress = Progress::Following(server.log.len());
                return self.queue.pop_front();
            }
            Progress::Unserved | Progress::Down => return None,
            Progress::Unlisted | Progress::Verifying => {}
            Progress::Following(from) => {
                for (index, change) in server.log.iter().enumerate().skip(from) {
                    if let Some(event) = report(target, self.content, change) {
                        self.progress = Progress::Following(index + 1);
                        return Some(event);
                    }
                }
                self.progress = Progress::Following(server.log.len());
                if is_served {
                    return None;
                }
            }
        }
        self.progress = Progress::Unserved;
        Some(WatchEvent::Lost { why: "404".into(), is_unserved: true })
    }

    /// The connection breaks, and what has changed meanwhile is lost: the watch lists again.
    pub(crate) fn relist(&mut self, is_reported: bool) {
        self.queue.clear();
        if is_reported {
            self.queue.push_back(WatchEvent::Lost { why: "connection reset".into(), is_unserved: false });
        }
        self.progress = Progress::Unlisted;
    }

    /// Reports its last report once more.
    pub(crate) fn repeat(&mut self) {
        // A list that is repeated out of order would be another list.
        if let Some(event @ (WatchEvent::Present { .. } | WatchEvent::Gone { .. })) = &self.last
            && self.queue.is_empty()
        {
            self.queue.push_back(event.clone());
        }
    }
}

impl TestBed {
    /// Somebody restores the server as it was: its versions go back, and every watch lists again.
    pub(crate) fn restore(&mut self, before: ApiServer) {
        let now = self.server.now;
        self.server = before;
        self.server.now = now;
        for watch in self.watches.values_mut() {
            watch.relist(false);
            watch.queue.push_back(WatchEvent::WentBack);
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
            watch.relist(true);
            watch.progress = Progress::Down;
        }
    }

    /// The watch of a kind lists again, after [`TestBed::lose_watch`] or without a report that it was lost.
    pub(crate) fn restore_watch(&mut self, kind: &str) {
        for (_, watch) in self.watches.iter_mut().filter(|(target, _)| target.kind.kind == kind) {
            watch.progress = Progress::Unlisted;
        }
    }

    /// A day has passed: the watches list again to verify what is known.
    pub(crate) fn verify(&mut self) {
        self.watches.values_mut().for_each(|watch| watch.progress = Progress::Verifying);
    }
}

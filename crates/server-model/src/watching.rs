//! A watch that a core has opened on the model.

use crate::server::ApiServer;
use crate::serving::report;
use protocol::{Content, WatchEvent, WatchTarget};
use std::collections::VecDeque;

/// An open watch.
#[derive(Debug)]
pub struct OpenWatch {
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
    /// A watch that lists first.
    pub fn new(content: Content) -> OpenWatch {
        OpenWatch { content, progress: Progress::Unlisted, queue: VecDeque::new(), last: None, has_listed: false }
    }

    /// The next report, if there is one.
    pub fn next(&mut self, target: &WatchTarget, server: &ApiServer) -> Option<WatchEvent> {
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
    pub fn relist(&mut self, is_reported: bool) {
        self.queue.clear();
        if is_reported {
            self.queue.push_back(WatchEvent::Lost { why: "connection reset".into(), is_unserved: false });
        }
        self.progress = Progress::Unlisted;
    }

    /// Reports its last report once more.
    pub fn repeat(&mut self) {
        // A list that is repeated out of order would be another list.
        if let Some(event @ (WatchEvent::Present { .. } | WatchEvent::Gone { .. })) = &self.last
            && self.queue.is_empty()
        {
            self.queue.push_back(event.clone());
        }
    }

    /// The server was restored as it was before: its versions go back.
    pub fn go_back(&mut self) {
        self.relist(false);
        self.queue.push_back(WatchEvent::WentBack);
    }

    /// The server does not answer any more, until [`OpenWatch::list_again`].
    pub fn lose(&mut self) {
        self.relist(true);
        self.progress = Progress::Down;
    }

    /// Whether it does not reach the server.
    pub fn is_lost(&self) -> bool {
        matches!(self.progress, Progress::Down)
    }

    /// It lists again.
    pub fn list_again(&mut self) {
        self.progress = Progress::Unlisted;
    }

    /// It lists again to verify what is known.
    pub fn verify(&mut self) {
        self.progress = Progress::Verifying;
    }
}

//! The open watches. What a closed or replaced watch has already sent is not delivered any more.

use anyhow::Context;
use cluster::{Report, Server, Watch};
use protocol::{Content, Served, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// How many reports may wait: a watch whose report has no room waits until the core has taken others.
const REPORTS: usize = 256;

/// What becomes of a watch after its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterList {
    /// It reports changes until it is closed.
    Follow,
    /// It ends.
    End,
}

/// All open watches.
pub(crate) struct Watches {
    server: Server,
    after_list: AfterList,
    open: BTreeMap<WatchTarget, Open>,
    /// How many watches were ever opened.
    opened: u64,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<Report>,
    reports: mpsc::Receiver<Report>,
}

/// One open watch; dropping it ends its task.
struct Open {
    number: usize,
    epoch: u64,
    task: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watches {
    pub(crate) fn new(server: Server, after_list: AfterList) -> Watches {
        let (sender, reports) = mpsc::channel(REPORTS);
        let (open, tasks) = (BTreeMap::new(), JoinSet::new());
        Watches { server, after_list, open, opened: 0, tasks, sender, reports }
    }

    /// Opens a watch; an open one of the same target is replaced.
    pub(crate) fn open(&mut self, target: WatchTarget, served: Served, content: Content) {
        self.close(&target);
        let taken: BTreeSet<usize> = self.open.values().map(|open| open.number).collect();
        let number = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
        self.opened += 1;
        let epoch = self.opened;
        let (server, sender) = (self.server.clone(), self.sender.clone());
        let watch = Watch { server, served, target: target.clone(), content, number, epoch, sender };
        let task = match self.after_list {
            AfterList::Follow => self.tasks.spawn(watch.follow()),
            AfterList::End => self.tasks.spawn(watch.list_once()),
        };
        self.open.insert(target, Open { number, epoch, task });
    }

    /// Closes a watch.
    pub(crate) fn close(&mut self, target: &WatchTarget) {
        self.open.remove(target);
    }

    /// Closes all watches.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Waits for the next report of an open watch; nothing when the last task has ended and nothing is left to report.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Report>> {
        loop {
            tokio::select! {
                Some(report) = self.reports.recv() => {
                    if self.is_current(&report) {
                        return Ok(Some(report));
                    }
                }
                Some(ended) = self.tasks.join_next() => {
                    // A closed watch ends with a cancellation.
                    if let Err(error) = ended && error.is_panic() {
                        return Err(error).context("a watch ended unexpectedly");
                    }
                    if self.is_idle() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// A report of an open watch that is ready now.
    pub(crate) fn try_next(&mut self) -> Option<Report> {
        loop {
            let report = self.reports.try_recv().ok()?;
            if self.is_current(&report) {
                return Some(report);
            }
        }
    }

    /// Whether no task runs and nothing is left to report.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.reports.is_empty()
    }

    fn is_current(&self, report: &Report) -> bool {
        self.open.get(&report.target).is_some_and(|open| open.epoch == report.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::{AfterList, Watches};
    use crate::test_server::{self, config_maps};
    use cluster::Report;
    use protocol::{Content, WatchEvent, WatchTarget};

    async fn send(watches: &Watches, epoch: u64, why: &str) {
        let event = WatchEvent::Lost { why: why.into(), is_unserved: false };
        watches.sender.send(Report { target: target(), epoch, event }).await.unwrap();
    }

    fn target() -> WatchTarget {
        WatchTarget::all("v1", "ConfigMap")
    }

    fn why(report: Option<Report>) -> Option<String> {
        match report?.event {
            WatchEvent::Lost { why, .. } => Some(why),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn reports_of_a_closed_or_replaced_watch_are_dropped() {
        let mut watches = Watches::new(test_server::silent(), AfterList::Follow);
        watches.open(target(), config_maps(), Content::Names);
        send(&watches, 1, "first").await;
        assert_eq!(why(watches.next().await.unwrap()).unwrap(), "first");
        send(&watches, 1, "of the replaced watch").await;
        watches.open(target(), config_maps(), Content::Names);
        send(&watches, 2, "second").await;
        assert_eq!(why(watches.try_next()).unwrap(), "second");
        send(&watches, 2, "of the closed watch").await;
        watches.close(&target());
        assert!(watches.try_next().is_none());
        watches.open(target(), config_maps(), Content::Names);
        send(&watches, 2, "of the closed watch").await;
        send(&watches, 3, "third").await;
        assert_eq!(why(watches.next().await.unwrap()).unwrap(), "third");
    }

    #[tokio::test]
    async fn a_watch_gets_the_lowest_free_number() {
        let mut watches = Watches::new(test_server::silent(), AfterList::Follow);
        let namespaced = |namespace: &str| WatchTarget { namespace: namespace.into(), ..target() };
        for namespace in ["a", "b", "c"] {
            watches.open(namespaced(namespace), config_maps(), Content::Names);
        }
        watches.close(&namespaced("b"));
        watches.open(namespaced("d"), config_maps(), Content::Names);
        watches.open(namespaced("a"), config_maps(), Content::Names);
        let numbers: Vec<(&str, usize)> =
            watches.open.iter().map(|(target, open)| (target.namespace.as_str(), open.number)).collect();
        assert_eq!(numbers, [("a", 0), ("c", 2), ("d", 1)]);
    }
}

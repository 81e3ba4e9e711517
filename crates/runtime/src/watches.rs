//! The open watches. What a closed or replaced watch has already sent is not delivered any more.

use anyhow::Context;
use cluster::{Report, Server, Watch};
use protocol::{Content, Served, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// How many reports may wait: a watch whose report has no room waits until the core has taken others.
const REPORTS: usize = 64;

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
    /// No watch is open yet; what they will report comes from the receiver.
    pub(crate) fn new(server: Server, after_list: AfterList) -> (Watches, mpsc::Receiver<Report>) {
        let (sender, reports) = mpsc::channel(REPORTS);
        let (open, tasks) = (BTreeMap::new(), JoinSet::new());
        (Watches { server, after_list, open, opened: 0, tasks, sender }, reports)
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

    /// Waits until the last task has ended.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<()> {
        loop {
            match self.tasks.join_next().await {
                // A closed watch ends with a cancellation.
                Some(Err(error)) if error.is_panic() => return Err(error).context("a watch ended unexpectedly"),
                Some(_) if self.is_idle() => return Ok(()),
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Whether no task runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether a report is of an open watch.
    pub(crate) fn is_current(&self, report: &Report) -> bool {
        self.open.get(&report.target).is_some_and(|open| open.epoch == report.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::{AfterList, Watches};
    use crate::test_server::{self, config_maps};
    use cluster::Report;
    use protocol::{Content, WatchEvent, WatchTarget};

    fn target() -> WatchTarget {
        WatchTarget::all("v1", "ConfigMap")
    }

    fn report(epoch: u64) -> Report {
        let event = WatchEvent::Lost { why: String::new(), is_unserved: false };
        Report { target: target(), epoch, event }
    }

    #[tokio::test]
    async fn reports_of_a_closed_or_replaced_watch_are_dropped() {
        let (mut watches, _reports) = Watches::new(test_server::silent(), AfterList::Follow);
        let current = |watches: &Watches| [1, 2, 3].map(|epoch| watches.is_current(&report(epoch)));
        watches.open(target(), config_maps(), Content::Names);
        assert_eq!(current(&watches), [true, false, false]);
        watches.open(target(), config_maps(), Content::Names);
        assert_eq!(current(&watches), [false, true, false], "the first watch is replaced");
        watches.close(&target());
        assert_eq!(current(&watches), [false, false, false]);
        watches.open(target(), config_maps(), Content::Names);
        assert_eq!(current(&watches), [false, false, true], "a closed watch stays closed");
    }

    #[tokio::test]
    async fn a_watch_gets_the_lowest_free_number() {
        let (mut watches, _reports) = Watches::new(test_server::silent(), AfterList::Follow);
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

//! The tasks that carry out commands, and the events they answer with.

use crate::batch::{Batch, Trace};
use crate::elsewhere::Elsewhere;
use crate::reads;
use crate::watches::{AfterList, Watches};
use anyhow::{Context, bail};
use cluster::{Permit, Report, Server, act};
use protocol::{Command, Event, Write};
use std::collections::VecDeque;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;

/// A core takes at most about so many events at a time, so that its commands do not wait for an endless burst.
const LARGEST_BATCH: usize = 1_024;

/// So many writes are on their way at a time. More of them would share one connection with the renewal of the lease, which would come too late.
const WRITES_AT_A_TIME: usize = 64;

/// All tasks of one core.
pub(crate) struct Workers<A> {
    server: Server,
    /// Nothing if the core must not write.
    permit: Option<Permit>,
    watches: Watches,
    reports: mpsc::Receiver<Report>,
    reads: JoinSet<(Event<A>, Trace)>,
    writes: JoinSet<(Event<A>, Trace)>,
    /// Writes that wait for others to end, in order.
    waiting: VecDeque<(Box<Write>, Trace)>,
}

/// A command that starts no task: it is the caller's.
pub(crate) enum Announcement<N> {
    /// Something to report.
    Notice(N),
    /// What the product waits for.
    Readiness(Vec<String>),
}

impl<A: Send + 'static> Workers<A> {
    pub(crate) fn new(server: Server, permit: Option<Permit>, after_list: AfterList) -> Workers<A> {
        let (watches, reports) = Watches::new(server.clone(), after_list);
        Workers {
            server,
            permit,
            watches,
            reports,
            reads: JoinSet::new(),
            writes: JoinSet::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Starts what a command asks for, as a part of the trace, or returns what is to be announced.
    pub(crate) fn start<N, R>(
        &mut self,
        command: Command<N, R>,
        elsewhere: &impl Elsewhere<R, A>,
        trace: &Trace,
    ) -> anyhow::Result<Option<Announcement<N>>> {
        let server = self.server.clone();
        match command {
            Command::Watch { target, served, content } => self.watches.open(target, served, content),
            Command::Unwatch(target) => self.watches.close(&target),
            Command::Discover { tag } => self.read(trace, reads::discover(server, tag)),
            Command::Query { query, served } => self.read(trace, reads::query(server, query, served)),
            Command::Refetch { key, served } => self.read(trace, reads::refetch(server, key, served)),
            Command::Inspect { key, served } => self.read(trace, reads::inspect(server, key, served)),
            Command::Search { search, served } => self.read(trace, reads::search(server, search, served)),
            Command::Preview { key, served, effect } => self.read(trace, reads::preview(server, key, served, effect)),
            Command::Elsewhere(number, request) => {
                let answer = elsewhere.carry_out(request);
                self.read(trace, async move { Event::Elsewhere(number, answer.await) });
            }
            Command::Write(asked) => {
                if self.permit.is_none() {
                    bail!("a core that must not write asked to write {}", asked.key);
                }
                self.waiting.push_back((asked, trace.clone()));
                self.send_waiting();
            }
            Command::Notify(notice) => return Ok(Some(Announcement::Notice(notice))),
            Command::Readiness(missing) => return Ok(Some(Announcement::Readiness(missing))),
        }
        Ok(None)
    }

    /// Sends writes that wait, as many as may be on their way.
    fn send_waiting(&mut self) {
        let Some(permit) = &self.permit else { return };
        while self.writes.len() < WRITES_AT_A_TIME
            && let Some((write, trace)) = self.waiting.pop_front()
        {
            let (server, permit) = (self.server.clone(), permit.clone());
            let write = async move {
                let key = write.key.clone();
                Event::Written(key, act::write(&server, &permit, *write).await)
            };
            self.writes.spawn(traced(&trace, write));
        }
    }

    fn read(&mut self, trace: &Trace, task: impl Future<Output = Event<A>> + Send + 'static) {
        self.reads.spawn(traced(trace, task));
    }

    /// Waits for an event and returns it with all others that are ready; nothing if only reports of closed watches came, or the last
    /// watch has ended.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Batch<A>> {
        let mut batch = Batch::default();
        tokio::select! {
            Some(report) = self.reports.recv() => self.watched(report, &mut batch),
            ended = self.watches.ended() => ended?,
            Some(read) = self.reads.join_next() => batch.answer(read.context("a read ended unexpectedly")?),
            Some(written) = self.writes.join_next() => batch.answer(written.context("a write ended unexpectedly")?),
        }
        self.add_ready(&mut batch)?;
        Ok(batch)
    }

    /// Adds all events that are ready.
    pub(crate) fn add_ready(&mut self, batch: &mut Batch<A>) -> anyhow::Result<()> {
        while let Some(read) = self.reads.try_join_next() {
            batch.answer(read.context("a read ended unexpectedly")?);
        }
        while let Some(written) = self.writes.try_join_next() {
            batch.answer(written.context("a write ended unexpectedly")?);
        }
        self.send_waiting();
        while batch.len() < LARGEST_BATCH
            && let Ok(report) = self.reports.try_recv()
        {
            self.watched(report, batch);
        }
        Ok(())
    }

    /// Adds a report, unless its watch is closed.
    fn watched(&self, report: Report, batch: &mut Batch<A>) {
        if self.watches.is_current(&report) {
            batch.add(Event::Watched(report.target, report.event));
        }
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.reads.is_empty()
            && self.writes.is_empty()
            && self.waiting.is_empty()
            && self.watches.is_idle()
            && self.reports.is_empty()
    }

    /// Ends everything but the writes that are on their way.
    pub(crate) fn stop_reading(&mut self) {
        self.waiting.clear();
        self.watches.close_all();
        self.reads.abort_all();
    }

    /// How many writes are in flight.
    pub(crate) fn writes_in_flight(&self) -> usize {
        self.writes.len()
    }

    /// Waits for the answer to a write; nothing if none is in flight.
    pub(crate) async fn next_written(&mut self) -> anyhow::Result<Option<Event<A>>> {
        let written = self.writes.join_next().await.transpose().context("a write ended unexpectedly")?;
        Ok(written.map(|(event, _)| event))
    }
}

/// A task that is a part of a trace, as its answer is.
fn traced<A, T: Future<Output = Event<A>>>(
    trace: &Trace,
    task: T,
) -> impl Future<Output = (Event<A>, Trace)> + use<A, T> {
    let trace = trace.clone();
    async { (task.instrument(trace.span.clone()).await, trace) }
}

//! A watch on its way to the client, event by event, with what goes wrong on the way.

use super::Shared;
use super::answer::{Body, HungUp, gone_event};
use super::asked::Asked;
use super::in_force::Order;
use super::plan::Fault;
use super::record::Recording;
use super::version;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// The body of a watch.
pub(super) fn body(watching: Watching) -> Body {
    StreamBody::new(futures::stream::unfold(watching, Watching::next)).boxed_unsync()
}

/// A body that ends in the middle.
pub(super) fn torn(first: Bytes) -> Body {
    let pieces = futures::stream::unfold(Some(first), |first| async move {
        match first {
            Some(first) => Some((Ok(Frame::data(first)), None)),
            None => {
                // What came before is on its way when the connection ends.
                tokio::task::yield_now().await;
                Some((Err(HungUp), None))
            }
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// One open watch.
pub(super) struct Watching {
    shared: Arc<Shared>,
    asked: Asked,
    recording: Recording,
    server: Incoming,
    /// What the server sent and was no whole line yet.
    partial: BytesMut,
    /// What goes to the client next.
    ready: VecDeque<Bytes>,
    then: Then,
    order: Option<Order>,
    /// The plan that the order is of.
    generation: u64,
    generations: watch::Receiver<u64>,
    /// Events since the order was given.
    events: u64,
}

/// One line of a watch.
#[derive(Clone)]
struct Told {
    line: Bytes,
    /// It only says how far the watch has come.
    bookmark: bool,
    version: Option<String>,
}

/// What comes after all that is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    End,
    HangUp,
    Silence,
}

impl Watching {
    pub(super) fn new(
        shared: Arc<Shared>,
        asked: Asked,
        recording: Recording,
        server: Incoming,
        (order, generation): (Option<Order>, u64),
    ) -> Watching {
        let generations = shared.in_force.generation();
        let order = order.filter(|order| order.fault.is_in_stream());
        let (partial, ready) = (BytesMut::new(), VecDeque::new());
        Watching {
            shared,
            asked,
            recording,
            server,
            partial,
            ready,
            then: Then::GoOn,
            order,
            generation,
            generations,
            events: 0,
        }
    }

    /// The next piece for the client.
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, HungUp>, Watching)> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some((Ok(Frame::data(piece)), self));
            }
            match self.then {
                Then::GoOn => {}
                Then::End => return None,
                Then::HangUp => {
                    // What came before is on its way when the connection ends.
                    tokio::task::yield_now().await;
                    return Some((Err(HungUp), self));
                }
                // Whoever is cut off stays so, whatever plan comes next.
                Then::Silence => std::future::pending().await,
            }
            self.follow_the_plan();
            if self.order.as_ref().is_some_and(|order| order.fault.event().is_none()) {
                self.go_wrong(None);
            } else if let Some(told) = self.whole_line() {
                self.pass(told);
            } else {
                self.receive().await;
            }
        }
    }

    /// Takes its order from the plan in force, where that is another by now.
    fn follow_the_plan(&mut self) {
        let current = *self.generations.borrow();
        if current != self.generation {
            self.generation = current;
            self.order = self.shared.in_force.due_while_open(&self.asked);
            self.events = 0;
        }
    }

    fn whole_line(&mut self) -> Option<Told> {
        let end = self.partial.iter().position(|byte| *byte == b'\n')?;
        let line = self.partial.split_to(end + 1).freeze();
        let (kind, version) = version::of_event(&line).unwrap_or_default();
        Some(Told { line, bookmark: kind == "BOOKMARK", version })
    }

    fn pass(&mut self, told: Told) {
        self.events += u64::from(!told.bookmark);
        let due = self.order.as_ref().is_some_and(|order| order.fault.event() == Some(self.events));
        if due && !told.bookmark {
            self.go_wrong(Some(told));
        } else {
            self.hand_over(told);
        }
    }

    /// What was ordered happens, to this event or at once.
    fn go_wrong(&mut self, told: Option<Told>) {
        let Some(order) = self.order.take() else { return };
        if !self.shared.in_force.fire(&order, self.recording.seq()) {
            // Another plan came between: it says what happens to this event.
            self.follow_the_plan();
            if let Some(told) = told {
                self.pass(told);
            }
            return;
        }
        self.recording.note(|record| record.fault = Some(order.fault.name()));
        match (order.fault, told) {
            (Fault::CutSilently { .. }, _) => self.then = Then::Silence,
            (Fault::Cut { .. }, _) => self.then = Then::HangUp,
            (Fault::Gone { .. }, _) => {
                self.ready.push_back(gone_event());
                self.then = Then::End;
            }
            (Fault::Duplicate { .. }, Some(told)) => {
                self.hand_over(told.clone());
                self.hand_over(told);
            }
            // A dropped event; no other fault is in a stream.
            _ => {}
        }
    }

    fn hand_over(&mut self, told: Told) {
        self.recording.note(|record| {
            record.bytes_out += told.line.len() as u64;
            record.events += u64::from(!told.bookmark);
            record.resource_version_out = told.version.or(record.resource_version_out.take());
        });
        self.ready.push_back(told.line);
    }

    /// Waits for more bytes, or for another plan.
    async fn receive(&mut self) {
        let mine = self.generation;
        let frame = tokio::select! {
            frame = self.server.frame() => frame,
            _ = self.generations.wait_for(|current| *current != mine) => return,
        };
        match frame {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    self.partial.extend_from_slice(&bytes);
                }
            }
            Some(Err(_)) => self.then = Then::HangUp,
            None => {
                let rest = self.partial.split().freeze();
                self.ready.extend((!rest.is_empty()).then_some(rest));
                self.then = Then::End;
            }
        }
    }
}

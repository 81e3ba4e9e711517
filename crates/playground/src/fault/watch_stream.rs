//! Forwards a watch to the client event by event and injects the faults that apply to events.

use super::Shared;
use super::active_plan::PendingFault;
use super::plan::Fault;
use super::record::Recording;
use super::request_info::RequestInfo;
use super::resource_version;
use super::response::{Body, ConnectionClosed, gone_event};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// The body of a watch.
pub(super) fn body(watch: WatchStream) -> Body {
    StreamBody::new(futures::stream::unfold(watch, WatchStream::next)).boxed_unsync()
}

/// A body that is cut off after these bytes.
pub(super) fn truncated(first: Bytes) -> Body {
    let pieces = futures::stream::unfold(Some(first), |first| async move {
        match first {
            Some(first) => Some((Ok(Frame::data(first)), None)),
            None => Some((close_connection().await, None)),
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// Yields once, so that the previous frame is sent before the connection is closed.
async fn close_connection() -> Result<Frame<Bytes>, ConnectionClosed> {
    tokio::task::yield_now().await;
    Err(ConnectionClosed)
}

/// One open watch.
pub(super) struct WatchStream {
    shared: Arc<Shared>,
    request: RequestInfo,
    recording: Recording,
    server: Incoming,
    /// Received bytes that are not a whole line yet.
    partial: BytesMut,
    /// Lines to send to the client.
    ready: VecDeque<Bytes>,
    /// What follows when `ready` is empty.
    then: Then,
    pending: Option<PendingFault>,
    /// The generation of the plan that `pending` belongs to.
    generation: u64,
    generations: watch::Receiver<u64>,
    /// Events since the plan applies to this watch.
    events: u64,
}

/// One line of a watch.
#[derive(Clone)]
struct EventLine {
    line: Bytes,
    is_bookmark: bool,
    version: Option<String>,
}

/// What the stream does after the lines that are ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Continue,
    End,
    Close,
    Hang,
}

impl WatchStream {
    pub(super) fn new(
        shared: Arc<Shared>,
        request: RequestInfo,
        recording: Recording,
        server: Incoming,
        (pending, generation): (Option<PendingFault>, u64),
    ) -> WatchStream {
        let generations = shared.active_plan.generation();
        let pending = pending.filter(|pending| pending.fault.applies_to_events());
        WatchStream {
            shared,
            request,
            recording,
            server,
            partial: BytesMut::new(),
            ready: VecDeque::new(),
            then: Then::Continue,
            pending,
            generation,
            generations,
            events: 0,
        }
    }

    /// The next frame for the client.
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, ConnectionClosed>, WatchStream)> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some((Ok(Frame::data(line)), self));
            }
            match self.then {
                Then::Continue => {}
                Then::End => return None,
                Then::Close => return Some((close_connection().await, self)),
                // A silent watch stays silent under every later plan.
                Then::Hang => std::future::pending().await,
            }
            self.refresh_pending();
            if self.pending.as_ref().is_some_and(|pending| pending.fault.event().is_none()) {
                self.inject(None);
            } else if let Some(event) = self.whole_line() {
                self.handle(event);
            } else {
                self.receive().await;
            }
        }
    }

    /// Takes the pending fault from the active plan if the plan has changed.
    fn refresh_pending(&mut self) {
        let current = *self.generations.borrow();
        if current != self.generation {
            self.generation = current;
            self.pending = self.shared.active_plan.due_for_open_watch(&self.request);
            self.events = 0;
        }
    }

    fn whole_line(&mut self) -> Option<EventLine> {
        let end = self.partial.iter().position(|byte| *byte == b'\n')?;
        let line = self.partial.split_to(end + 1).freeze();
        let (kind, version) = resource_version::of_event(&line).unwrap_or_default();
        Some(EventLine { line, is_bookmark: kind == "BOOKMARK", version })
    }

    fn handle(&mut self, event: EventLine) {
        self.events += u64::from(!event.is_bookmark);
        let is_due = self.pending.as_ref().is_some_and(|pending| pending.fault.event() == Some(self.events));
        if is_due && !event.is_bookmark {
            self.inject(Some(event));
        } else {
            self.forward(event);
        }
    }

    /// Injects the pending fault at this event, or at once.
    fn inject(&mut self, event: Option<EventLine>) {
        let Some(pending) = self.pending.take() else { return };
        if !self.shared.active_plan.fire(&pending, self.recording.seq()) {
            // The plan has changed meanwhile: the new one decides about this event.
            self.refresh_pending();
            if let Some(event) = event {
                self.handle(event);
            }
            return;
        }
        self.recording.update(|record| record.fault = Some(pending.fault.name()));
        match (pending.fault, event) {
            (Fault::CutSilently { .. }, _) => self.then = Then::Hang,
            (Fault::Cut { .. }, _) => self.then = Then::Close,
            (Fault::Gone { .. }, _) => {
                self.ready.push_back(gone_event());
                self.then = Then::End;
            }
            (Fault::Duplicate { .. }, Some(event)) => {
                self.forward(event.clone());
                self.forward(event);
            }
            // `Drop`: no other fault applies to events.
            _ => {}
        }
    }

    fn forward(&mut self, event: EventLine) {
        self.recording.update(|record| {
            record.bytes_out += event.line.len() as u64;
            record.events += u64::from(!event.is_bookmark);
            record.resource_version_out = event.version.or(record.resource_version_out.take());
        });
        self.ready.push_back(event.line);
    }

    /// Waits for more bytes or for another plan.
    async fn receive(&mut self) {
        let own = self.generation;
        let frame = tokio::select! {
            frame = self.server.frame() => frame,
            _ = self.generations.wait_for(|current| *current != own) => return,
        };
        match frame {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    self.partial.extend_from_slice(&bytes);
                }
            }
            Some(Err(_)) => self.then = Then::Close,
            None => {
                let rest = self.partial.split().freeze();
                self.ready.extend((!rest.is_empty()).then_some(rest));
                self.then = Then::End;
            }
        }
    }
}

//! Events that a core handles together, and the trace to which that belongs.

use crate::traces::{LOG_TARGET, TraceId};
use change::Key;
use cluster::trace::TARGET;
use protocol::{Event, Never, WatchEvent};
use tracing::Span;
use tracing::span::EnteredSpan;

/// A trace that is not complete yet; without a collector it is nothing. It ends when nothing belongs to it any more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trace {
    /// What is collected.
    pub(crate) span: Span,
    /// What log lines show: only the id.
    log: Span,
}

impl Trace {
    /// No trace.
    pub(crate) fn none() -> Trace {
        Trace { span: Span::none(), log: Span::none() }
    }

    /// What is logged and queued until the end of the returned value belongs to the trace.
    pub(crate) fn enter(&self) -> (EnteredSpan, EnteredSpan) {
        (self.log.clone().entered(), self.span.clone().entered())
    }
}

/// Events that are handled together.
pub(crate) struct Batch<A = Never> {
    pub(crate) events: Vec<Event<A>>,
    /// How many of them answer a request.
    answers: usize,
    /// The traces of these requests, each once; nothing if no traces are collected.
    traces: Vec<Trace>,
}

impl<A> Default for Batch<A> {
    fn default() -> Batch<A> {
        Batch { events: Vec::new(), answers: 0, traces: Vec::new() }
    }
}

impl<A> Batch<A> {
    /// One event that answers nothing.
    pub(crate) fn of(event: Event<A>) -> Batch<A> {
        Batch { events: vec![event], ..Batch::default() }
    }

    /// Adds an event that answers nothing.
    pub(crate) fn add(&mut self, event: Event<A>) {
        self.events.push(event);
    }

    /// Adds the answer to a request of a trace.
    pub(crate) fn answer(&mut self, (event, trace): (Event<A>, Trace)) {
        self.events.push(event);
        self.answers += 1;
        if !trace.span.is_disabled() && !self.traces.contains(&trace) {
            self.traces.push(trace);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The trace of the batch. Answers continue the trace of the first request, also with news about the same object: a write is often
    /// watched before it is answered. Other news begin a new trace, so that each comes to an end. The other traces are linked.
    pub(crate) fn trace(&self) -> Trace {
        let (trace, linked) = match &self.traces[..] {
            [first, others @ ..] if self.answers == self.events.len() || self.object().is_some() => {
                (first.clone(), others)
            }
            others => (self.new_trace(), others),
        };
        for other in linked {
            trace.span.follows_from(&other.span);
        }
        trace
    }

    fn new_trace(&self) -> Trace {
        let (id, object) = (TraceId::random(), self.object());
        let log = tracing::info_span!(target: LOG_TARGET, "trace", trace_id = %id);
        let span = tracing::info_span!(
            target: TARGET,
            parent: None,
            "reconcile",
            trace_id = %id,
            otel.name = object.as_ref().map(|object| format!("reconcile {}", object.kind)),
            k8s.object.kind = object.as_ref().map(|object| object.kind),
            k8s.object.name = object.as_ref().map(|object| object.name),
            k8s.namespace.name = object.as_ref().map(|object| object.namespace).filter(|namespace| !namespace.is_empty()),
        );
        Trace { span, log }
    }

    /// The span of the core's decision about the events; it ends when it is dropped.
    pub(crate) fn evaluation(&self, trace: &Trace) -> Span {
        tracing::info_span!(target: TARGET, parent: &trace.span, "evaluate", virtpilot.events = self.events.len())
    }

    /// The object to which something has happened, if all events are about one.
    fn object(&self) -> Option<Object<'_>> {
        let mut objects = self.events.iter().map(|event| match event {
            Event::Watched(
                target,
                WatchEvent::Present { namespace, name, .. } | WatchEvent::Gone { namespace, name, .. },
            ) => Some(Object { kind: &target.kind.kind, namespace, name }),
            Event::Written(Key { kind, namespace, name }, _) => Some(Object { kind: &kind.kind, namespace, name }),
            _ => None,
        });
        let first = objects.next()??;
        objects.all(|object| object == Some(first)).then_some(first)
    }
}

/// One object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Object<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::{Batch, Object};
    use crate::test_server::key;
    use protocol::{Event, Never, WatchEvent, WatchTarget, Written};
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::SubscriberExt;

    fn gone(name: &str) -> Event {
        let event = WatchEvent::Gone { namespace: "n".into(), name: name.into(), version: "1".into() };
        Event::Watched(WatchTarget::all("v1", "ConfigMap"), event)
    }

    #[test]
    fn a_trace_names_the_object_if_all_events_are_about_one() {
        let about = |events: Vec<Event>| {
            let batch = Batch { events, ..Batch::default() };
            batch.object().map(|Object { kind, namespace, name }| format!("{kind} {namespace}/{name}"))
        };
        let written = || Event::Written(key("a"), Ok(Written::default()));
        assert_eq!(about(vec![gone("a")]).as_deref(), Some("ConfigMap n/a"));
        assert_eq!(about(vec![gone("a"), gone("a"), written()]).as_deref(), Some("ConfigMap n/a"));
        assert_eq!(about(vec![gone("a"), gone("b")]), None);
        assert_eq!(about(vec![gone("a"), Event::Tick]), None);
        assert_eq!(about(Vec::new()), None);
    }

    #[test]
    fn answers_continue_a_trace_and_news_about_another_object_begin_one() {
        let registry = tracing_subscriber::registry();
        tracing::subscriber::with_default(registry, || {
            let (first, second) = (Batch::<Never>::of(Event::Tick).trace(), Batch::<Never>::of(Event::Tick).trace());
            assert_ne!(first, second);
            let mut batch = Batch::<Never>::default();
            for trace in [&first, &second, &first] {
                batch.answer((Event::Tick, trace.clone()));
            }
            assert_eq!(batch.traces.len(), 2);
            assert_eq!(batch.trace(), first);
            batch.add(gone("a"));
            assert!(![&first, &second].contains(&&batch.trace()));
            let mut batch = Batch::of(gone("a"));
            batch.answer((Event::Written(key("a"), Ok(Written::default())), second.clone()));
            assert_eq!(batch.trace(), second, "what was written is watched");
            batch.add(gone("b"));
            assert_ne!(batch.trace(), second);
        });
    }

    #[test]
    fn without_a_collector_there_are_no_traces() {
        let off = tracing_subscriber::fmt::layer().with_filter(Targets::new());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(off), || {
            let mut batch = Batch::<Never>::of(Event::Tick);
            batch.answer((Event::Tick, batch.trace()));
            assert!(batch.trace().span.is_disabled() && batch.traces.is_empty());
        });
    }
}

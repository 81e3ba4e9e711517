//! Collects spans as they end, and queues them for the exporter.

use super::span::{Context, Span, Value};
use super::{SpanId, TraceId};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{self, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// Spans beyond this are dropped and counted: some 500 kB.
const QUEUE: usize = 1_024;

/// The layer that collects. It has to be filtered by [`cluster::trace::TARGET`].
pub struct Collector {
    queue: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

/// What was collected.
pub struct Collected {
    pub(super) spans: mpsc::Receiver<Span>,
    pub(super) dropped: Arc<AtomicU64>,
}

/// A layer, and where its spans come out.
pub fn collector() -> (Collector, Collected) {
    let ((queue, spans), dropped) = (mpsc::channel(QUEUE), Arc::new(AtomicU64::new(0)));
    (Collector { queue, dropped: dropped.clone() }, Collected { spans, dropped })
}

/// A span that has not ended.
struct Building {
    span: Span,
    clock: TraceClock,
}

/// The clock of a trace: all its spans count from one moment, so that a wall clock that is set does not disorder them.
#[derive(Clone, Copy)]
struct TraceClock {
    /// Nanoseconds since 1970.
    started: u64,
    since: Instant,
}

impl TraceClock {
    fn start() -> TraceClock {
        let started = u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default();
        TraceClock { started, since: Instant::now() }
    }

    fn now(&self) -> u64 {
        self.started.saturating_add(u64::try_from(self.since.elapsed().as_nanos()).unwrap_or_default())
    }
}

impl<S> Layer<S> for Collector
where
    S: tracing::Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| place(&parent));
        let trace = parent.map_or_else(TraceId::random, |(parent, _)| parent.trace);
        let clock = parent.map_or_else(TraceClock::start, |(_, clock)| clock);
        let start = clock.now();
        let mut building = Building {
            span: Span {
                context: Context { trace, span: SpanId::random() },
                parent: parent.map(|(parent, _)| parent.span),
                name: attributes.metadata().name().to_owned(),
                is_request: false,
                start,
                end: start,
                attributes: Vec::new(),
                links: Vec::new(),
            },
            clock,
        };
        attributes.record(&mut building.span);
        span.extensions_mut().insert(building);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(building) = span.extensions_mut().get_mut::<Building>() {
            values.record(&mut building.span);
        }
    }

    fn on_follows_from(&self, id: &Id, earlier: &Id, context: layer::Context<'_, S>) {
        let (Some(span), Some(earlier)) = (context.span(id), context.span(earlier)) else { return };
        let Some((earlier, _)) = place(&earlier) else { return };
        if let Some(building) = span.extensions_mut().get_mut::<Building>() {
            building.span.links.push(earlier);
        }
    }

    fn on_close(&self, id: Id, context: layer::Context<'_, S>) {
        let Some(building) = context.span(&id).and_then(|span| span.extensions_mut().remove::<Building>()) else {
            return;
        };
        let span = Span { end: building.clock.now(), ..building.span };
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The place and the clock of a span that is collected.
fn place<S: for<'lookup> LookupSpan<'lookup>>(span: &SpanRef<'_, S>) -> Option<(Context, TraceClock)> {
    span.extensions().get::<Building>().map(|building| (building.span.context, building.clock))
}

/// Fields become attributes, except those that describe the span itself.
impl Visit for Span {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "otel.name" => value.clone_into(&mut self.name),
            "otel.kind" => self.is_request = value == "client",
            "trace_id" => {
                if let Ok(id) = u128::from_str_radix(value, 16) {
                    self.context.trace = TraceId(id);
                }
            }
            name => self.attributes.push((name, Value::Text(value.to_owned()))),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.push((field.name(), Value::Number(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_i64(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::span::{Span, Value};
    use super::{Collected, QUEUE, collector};
    use std::sync::atomic::Ordering;
    use tracing::field::Empty;
    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::SubscriberExt;

    fn collect(work: impl FnOnce()) -> (Vec<Span>, u64) {
        let (layer, Collected { mut spans, dropped }) = collector();
        with_default(tracing_subscriber::registry().with(layer), work);
        let mut collected = Vec::new();
        while let Ok(span) = spans.try_recv() {
            collected.push(span);
        }
        (collected, dropped.load(Ordering::Relaxed))
    }

    #[test]
    fn a_span_has_the_trace_of_its_parent_and_ends_after_its_children() {
        let (spans, _) = collect(|| {
            let earlier = tracing::info_span!("earlier");
            let root = tracing::info_span!("root", trace_id = %"0af7651916cd43dd8448eb211c80319c");
            root.follows_from(&earlier);
            drop(earlier);
            let child =
                tracing::info_span!(parent: &root, "child", otel.name = "apply X", otel.kind = "client", code = Empty);
            drop(root);
            child.record("code", 201_u16);
        });
        let [earlier, child, root] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!(root.context.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_ne!(earlier.context.trace, root.context.trace);
        assert_eq!((root.parent, &root.links[..]), (None, &[earlier.context][..]));
        assert_eq!((child.context.trace, child.parent), (root.context.trace, Some(root.context.span)));
        assert_eq!((child.name.as_str(), child.is_request), ("apply X", true));
        assert_eq!(child.attributes.last(), Some(&("code", Value::Number(201))));
        assert!(root.start <= child.start && child.end <= root.end, "{spans:?}");
    }

    #[test]
    fn spans_beyond_the_queue_are_dropped_and_counted() {
        let (spans, dropped) = collect(|| (0..QUEUE + 3).for_each(|_| drop(tracing::info_span!("one"))));
        assert_eq!((spans.len(), dropped), (QUEUE, 3));
    }
}

//! Traces over OTLP/HTTP in JSON: `tracing` spans are collected, queued, encoded and posted to a collector.
//!
//! Nothing here ever waits for the collector but the exporter's own task. Without a [`collect::Collector`] in the subscriber every span is
//! disabled, and no task runs.

pub mod collect;
mod delivery;
mod encode;
pub mod export;
mod settings;
mod span;

pub use collect::{Collector, collector};
pub use export::Exporter;
pub use settings::Settings;

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// The target of the span that log lines show: the id of the trace to which they belong.
pub const LOG_TARGET: &str = "trace_id";

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceId(pub(crate) u128);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanId(pub(crate) u64);

impl TraceId {
    pub(crate) fn random() -> TraceId {
        TraceId(u128::from(random()) << 64 | u128::from(random()))
    }
}

impl SpanId {
    pub(crate) fn random() -> SpanId {
        SpanId(random())
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A number that nobody else has: the standard library's hashes have a random key. Zero is no valid id.
fn random() -> u64 {
    RandomState::new().hash_one(0).max(1)
}

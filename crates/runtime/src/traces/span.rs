//! A span that has ended, as it is queued for the collector.

use super::{SpanId, TraceId};

/// The place of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
}

/// One span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) context: Context,
    pub(crate) parent: Option<SpanId>,
    pub(crate) name: String,
    /// Whether it is a request to another process.
    pub(crate) is_request: bool,
    /// Nanoseconds since 1970.
    pub(crate) start: u64,
    /// Nanoseconds since 1970.
    pub(crate) end: u64,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    /// Other spans that led to this one.
    pub(crate) links: Vec<Context>,
}

/// The attribute that says why a span failed.
pub(crate) const ERROR: &str = "error.type";

impl Span {
    pub(crate) fn has_failed(&self) -> bool {
        self.attributes.iter().any(|(name, _)| *name == ERROR)
    }
}

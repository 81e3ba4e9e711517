//! What a core is told.

use crate::command::Search;
use crate::core::Never;
use crate::kinds::{Groups, Kinds};
use crate::watch::{WatchEvent, WatchTarget};
use crate::write::{WriteError, Written};
use catalog::{Answer, Query};
use change::{Key, Live};
use serde_json::Value;

/// One event. Errors are text: a core decides when to try again, not why it failed.
///
/// `A` is the answer to what is asked elsewhere than at the API server.
#[derive(Debug)]
pub enum Event<A = Never> {
    /// The process has started, or a timer has expired.
    Tick,
    /// An open watch reports something.
    Watched(WatchTarget, WatchEvent),
    /// The answer to [`Command::Discover`](crate::Command::Discover).
    Discovered(Result<Discovered, String>),
    /// The answer to [`Command::Query`](crate::Command::Query).
    Answered(Query, Answer),
    /// The answer to [`Command::Refetch`](crate::Command::Refetch): the metadata, or nothing if the object does not exist.
    Refetched(Key, Result<Option<Live>, String>),
    /// The answer to [`Command::Inspect`](crate::Command::Inspect): the whole object, or nothing if it does not exist.
    Inspected(Key, Result<Option<(Live, Value)>, String>),
    /// The answer to [`Command::Search`](crate::Command::Search): the objects found.
    Found(Search, Result<Vec<Key>, String>),
    /// The answer to [`Command::Preview`](crate::Command::Preview): the whole object as the server would make it.
    Previewed(Key, Result<Value, WriteError>),
    /// The answer to the [`Command::Elsewhere`](crate::Command::Elsewhere) with this number.
    Elsewhere(u64, A),
    /// The answer to [`Command::Write`](crate::Command::Write).
    Written(Key, Result<Written, WriteError>),
}

/// What the API server says it serves.
#[derive(Debug)]
pub enum Discovered {
    /// All kinds.
    All(Kinds),
    /// All groups but the core one, which never changes.
    Groups(Groups),
    /// The same as before.
    Unchanged,
}

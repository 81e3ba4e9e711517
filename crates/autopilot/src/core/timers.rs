//! What happens without an event.

use catalog::Query;
use change::Key;
use protocol::Search;

/// What a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Writes wait no longer for the first lists.
    FirstLists,
    /// Ask the server what it serves.
    Discover,
    /// Decide about an object again.
    Reconcile(Key),
    /// Read an object again.
    Refetch(Key),
    /// Ask a query again.
    Query(Query),
    /// Search again.
    Search(Search),
    /// Searches wait no longer for writes.
    Searches,
    /// There is room for another write, because one takes long.
    Room,
    /// Write the records again.
    Save,
    /// Publish the report.
    Publish,
}

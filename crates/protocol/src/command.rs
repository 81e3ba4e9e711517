//! What a core asks for.

use crate::core::Never;
use crate::kinds::Served;
use crate::watch::{Content, WatchTarget};
use crate::write::Write;
use catalog::Query;
use change::{Effect, Key, Kind};

/// One command. Each is carried out at once; a core that wants to wait asks to be woken and sends it later.
///
/// `N` is what a core reports, `R` what it asks for elsewhere than at the API server.
#[derive(Debug)]
pub enum Command<N, R = Never> {
    /// List and watch a target until it is closed.
    Watch {
        /// What to watch.
        target: WatchTarget,
        /// How the server serves its kind.
        served: Served,
        /// How much of each object.
        content: Content,
    },
    /// Close a watch; nothing it has already sent is delivered any more.
    Unwatch(WatchTarget),
    /// Ask the API server what it serves.
    Discover {
        /// The tag of the last answer; nothing for a complete one.
        tag: Option<String>,
    },
    /// Answer a template's query.
    Query {
        /// The query.
        query: Query,
        /// How the server serves its kind.
        served: Served,
    },
    /// Read the metadata of an object that its watch will not report again.
    Refetch {
        /// The object.
        key: Key,
        /// How the server serves its kind.
        served: Served,
    },
    /// Read a whole object.
    Inspect {
        /// The object.
        key: Key,
        /// How the server serves its kind.
        served: Served,
    },
    /// Look for objects that may have to be removed.
    Search {
        /// What to look for.
        search: Search,
        /// How the server serves its kind.
        served: Served,
    },
    /// Find out by a dry run whether the server accepts an apply, and what it would make of the object; nothing is written.
    Preview {
        /// The object.
        key: Key,
        /// How the server serves its kind.
        served: Served,
        /// The apply.
        effect: Effect,
    },
    /// Ask elsewhere than at the API server. The number is repeated in the answer.
    Elsewhere(u64, R),
    /// Make one write.
    Write(Box<Write>),
    /// Report something.
    Notify(N),
    /// What the product waits for; nothing means ready.
    Readiness(Vec<String>),
}

/// What is looked for where nothing is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Search {
    /// Every object with the product's label.
    Label(WatchTarget),
    /// One object, with or without the label.
    Name(Key),
}

impl Search {
    /// The kind of the objects.
    pub fn kind(&self) -> &Kind {
        match self {
            Search::Label(target) => &target.kind,
            Search::Name(key) => &key.kind,
        }
    }
}

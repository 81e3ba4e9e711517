//! What templates asked of the cluster: answered once, and again whenever what was asked about has changed.

use super::places::Place;
use catalog::{Answer, Query};
use change::Kind;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;

/// Templates that ask on and on are stopped.
const MOST: usize = 500;

/// The questions so far.
#[derive(Default)]
pub(super) struct Questions {
    /// All that were asked.
    asked: BTreeSet<Query>,
    /// Those under way, and whether they have to be asked once more.
    under_way: BTreeMap<Query, bool>,
    /// Their answers.
    pub(super) asking: JoinSet<(Query, Answer)>,
}

impl Questions {
    /// Takes a question; false if it was taken before.
    pub(super) fn take(&mut self, query: &Query) -> bool {
        self.asked.insert(query.clone())
    }

    /// Whether there are so many that no other is taken.
    pub(super) fn are_too_many(&self) -> bool {
        self.asked.len() >= MOST
    }

    /// Begins to ask; false if it is being asked, and will be once more.
    pub(super) fn begin(&mut self, query: &Query) -> bool {
        match self.under_way.get_mut(query) {
            Some(once_more) => {
                *once_more = true;
                false
            }
            None => self.under_way.insert(query.clone(), false).is_none(),
        }
    }

    /// It was answered; whether it has to be asked once more.
    pub(super) fn end(&mut self, query: &Query) -> bool {
        self.under_way.remove(query).unwrap_or(false)
    }

    /// All that were asked.
    pub(super) fn all(&self) -> Vec<Query> {
        self.asked.iter().cloned().collect()
    }

    /// Those about something in a place; with a name, only those that its object can answer.
    pub(super) fn about(&self, place: &Place, name: Option<&str>) -> Vec<Query> {
        let fits = |query: &&Query| {
            place_of(query) == *place
                && (name.is_none() || matches!(query, Query::List { .. }) || name_of(query) == name)
        };
        self.asked.iter().filter(fits).cloned().collect()
    }
}

/// Where what is asked about lives.
pub(super) fn place_of(query: &Query) -> Place {
    match query {
        Query::Object { api_version, kind, namespace, .. } => {
            Place { kind: Kind::new(api_version, kind), namespace: namespace.clone() }
        }
        Query::Crd { .. } => super::discovery::definitions(),
        Query::List { api_version, kind } => Place::all(api_version, kind),
    }
}

fn name_of(query: &Query) -> Option<&str> {
    match query {
        Query::Object { name, .. } | Query::Crd { name } => Some(name),
        Query::List { .. } => None,
    }
}

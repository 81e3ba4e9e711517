//! What templates asked of the cluster: answered once, and again whenever the object in question has changed.

use catalog::Query;
use change::Kind;
use protocol::WatchTarget;
use std::collections::{BTreeMap, BTreeSet};

/// A template that asks for more is stopped.
const MOST: usize = 500;

/// The queries so far.
#[derive(Debug, Default)]
pub struct Queries {
    asked: BTreeSet<Query>,
    /// Those in flight, and whether they have to be repeated afterwards.
    in_flight: BTreeMap<Query, bool>,
}

impl Queries {
    /// Adds a query; false if it is known.
    pub fn add(&mut self, query: &Query) -> bool {
        self.asked.insert(query.clone())
    }

    /// Whether no further query is accepted.
    pub fn are_too_many(&self) -> bool {
        self.asked.len() >= MOST
    }

    /// Whether a template asked it.
    pub fn is_asked(&self, query: &Query) -> bool {
        self.asked.contains(query)
    }

    /// Marks a query as in flight; false if it is already, and will be repeated.
    pub fn begin(&mut self, query: &Query) -> bool {
        match self.in_flight.get_mut(query) {
            Some(repeat) => {
                *repeat = true;
                false
            }
            None => self.in_flight.insert(query.clone(), false).is_none(),
        }
    }

    /// Takes an answer; whether the query has to be repeated.
    pub fn end(&mut self, query: &Query) -> bool {
        self.in_flight.remove(query).unwrap_or(false)
    }

    /// All queries.
    pub fn all(&self) -> Vec<Query> {
        self.asked.iter().cloned().collect()
    }

    /// The queries about objects of a target; with a name, only those that this object can answer.
    pub fn about(&self, target: &WatchTarget, name: Option<&str>) -> Vec<Query> {
        let fits = |query: &&Query| {
            target_of(query) == *target
                && (name.is_none() || matches!(query, Query::List { .. }) || name_of(query) == name)
        };
        self.asked.iter().filter(fits).cloned().collect()
    }
}

/// The watch that reports changes of what is asked about.
pub fn target_of(query: &Query) -> WatchTarget {
    match query {
        Query::Object { api_version, kind, namespace, .. } => {
            WatchTarget { kind: Kind::new(api_version, kind), namespace: namespace.clone(), name: String::new() }
        }
        Query::Crd { .. } => WatchTarget::crds(),
        Query::List { api_version, kind } => WatchTarget::all(api_version, kind),
    }
}

fn name_of(query: &Query) -> Option<&str> {
    match query {
        Query::Object { name, .. } | Query::Crd { name } => Some(name),
        Query::List { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Queries;
    use catalog::Query;

    #[test]
    fn a_query_is_in_flight_once_and_repeated_if_it_was_wanted_meanwhile() {
        let (mut queries, query) = (Queries::default(), Query::Crd { name: "a.io".into() });
        assert!(!queries.is_asked(&query) && queries.add(&query) && queries.is_asked(&query) && !queries.add(&query));
        assert!(queries.begin(&query));
        assert!(!queries.end(&query), "nobody wanted it meanwhile");
        assert!(queries.begin(&query));
        assert!(!queries.begin(&query), "it is in flight");
        assert!(queries.end(&query));
        assert!(!queries.end(&query), "it is not in flight");
    }
}

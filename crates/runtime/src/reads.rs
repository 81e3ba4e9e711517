//! Carries out the commands that read, each with one event as its answer.

use catalog::Query;
use change::{Effect, Key};
use cluster::{Server, discovery, list, live, preview};
use protocol::{Discovered, Event, Search, Served};

/// Asks what the server serves: everything, or what has changed since the answer with this tag.
pub(crate) async fn discover<A>(server: Server, tag: Option<String>) -> Event<A> {
    let discovered = match tag {
        None => discovery::discover(&server).await.map(Discovered::All),
        Some(tag) => {
            let groups = discovery::discover_groups(&server, &tag).await;
            groups.map(|groups| groups.map_or(Discovered::Unchanged, Discovered::Groups))
        }
    };
    Event::Discovered(discovered.map_err(|failure| failure.to_string()))
}

/// Answers a template's query.
pub(crate) async fn query<A>(server: Server, query: Query, served: Served) -> Event<A> {
    let answer = cluster::query::answer(&server, &served, &query).await;
    Event::Answered(query, answer)
}

/// Reads the metadata of one object.
pub(crate) async fn refetch<A>(server: Server, key: Key, served: Served) -> Event<A> {
    let live = live::read(&server, &served, &key).await.map_err(|failure| failure.to_string());
    Event::Refetched(key, live)
}

/// Reads one whole object.
pub(crate) async fn inspect<A>(server: Server, key: Key, served: Served) -> Event<A> {
    let object = live::inspect(&server, &served, &key).await.map_err(|failure| failure.to_string());
    Event::Inspected(key, object)
}

/// Finds out what the server would make of an apply.
pub(crate) async fn preview<A>(server: Server, key: Key, served: Served, effect: Effect) -> Event<A> {
    let object = preview::effect(&server, &served, &key, effect).await;
    Event::Previewed(key, object)
}

/// Looks for objects that may have to be removed.
pub(crate) async fn search<A>(server: Server, search: Search, served: Served) -> Event<A> {
    let found = match &search {
        Search::Label(target) => {
            let selector = server.identity.selector();
            match list::lives(&server, &served, &target.namespace, &selector).await {
                Ok(found) => Ok(found.into_iter().map(|(key, _)| key).collect()),
                // The kind is not served any more, so it has no objects.
                Err(failure) if failure.is_not_found() => Ok(Vec::new()),
                Err(failure) => Err(failure),
            }
        }
        Search::Name(key) => {
            let live = live::read(&server, &served, key).await;
            live.map(|live| live.map(|_| key.clone()).into_iter().collect())
        }
    };
    Event::Found(search, found.map_err(|failure| failure.to_string()))
}

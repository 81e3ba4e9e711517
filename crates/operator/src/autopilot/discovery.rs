//! When to ask the server what it serves: after a change of a definition that matters, and never without one.

use super::places::Place;
use catalog::FACT_SOURCES;
use catalog::{Catalog, Need};
use change::Kind;
use cluster::kinds::{Groups, discover_groups};
use cluster::request::Failure;
use cluster::{Kinds, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Definitions come in bunches, and the server needs a moment to serve one.
const FIRST: Duration = Duration::from_millis(25);
/// A server that lags behind is not asked more often than this.
const LAST: Duration = Duration::from_secs(5);
/// So often a definition that is not served yet is asked for, within some 45 seconds; then only another change makes us ask.
const TRIES: u32 = 16;
/// So often it is asked whether a changed definition is served otherwise, within two seconds: most changes are not about that.
const TRIES_AFTER_CHANGE: u32 = 6;

/// The kind of definitions.
pub(super) fn definitions() -> Place {
    Place::all("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

/// What is known of definitions: only of those in groups that something needs.
pub(super) struct Discovery {
    groups: BTreeSet<String>,
    /// Their names, and how often their specs were changed.
    present: BTreeMap<String, i64>,
    /// Those that are gone or about to go, as long as the server may still claim to serve them.
    leaving: BTreeSet<String>,
    /// Kinds that templates have named and no file says in plain words.
    named: BTreeSet<Kind>,
    /// Something was changed in another group.
    unsure: bool,
    /// A definition was changed, and nothing else is served yet.
    expecting: bool,
    tries: u32,
    /// When the server is asked, or was while its answer is under way.
    planned: Option<Instant>,
    once_more: bool,
    asking: JoinSet<Result<Option<Groups>, Failure>>,
}

/// What a change of a definition means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// It may be served otherwise now.
    Perhaps,
    /// It goes.
    Goes,
}

impl Discovery {
    pub(super) fn new(catalog: &Catalog) -> Discovery {
        let mut groups = BTreeSet::from([api::hco::GROUP.to_owned()]);
        groups.extend(FACT_SOURCES.iter().map(|source| Kind::new(source.api_version, source.kind).group));
        groups.extend(catalog.assets.iter().flat_map(Need::all_of).map(|need| need.labels().group));
        Discovery {
            groups,
            present: BTreeMap::new(),
            leaving: BTreeSet::new(),
            named: BTreeSet::new(),
            unsure: false,
            expecting: false,
            tries: 0,
            planned: None,
            once_more: false,
            asking: JoinSet::new(),
        }
    }

    /// Something needs this kind; whether it can be told from what is known that it is not served.
    pub(super) fn is_sure_of(&mut self, kind: &Kind) -> bool {
        if self.groups.insert(kind.group.clone()) { !self.unsure } else { self.planned.is_none() }
    }

    /// A template makes an object of this kind, which is not served; false if that is known.
    pub(super) fn name(&mut self, kind: &Kind) -> bool {
        self.groups.insert(kind.group.clone());
        self.named.insert(kind.clone())
    }

    /// What the catalogue needs and the server does not serve.
    pub(super) fn absent(&self, catalog: &Catalog, kinds: &Kinds) -> BTreeSet<Need> {
        let named = self.named.iter().filter(|kind| kinds.find(kind).is_none()).map(Need::of);
        absent(catalog, kinds).chain(named).collect()
    }

    /// Whether a definition is known, and as it was.
    pub(super) fn knows(&self, name: &str, generation: i64) -> bool {
        self.present.get(name) == Some(&generation)
    }

    /// Takes a definition as it is now. `is_news` is false while everything is told for the first time.
    pub(super) fn see(&mut self, kinds: &Kinds, name: &str, generation: i64, leaves: bool, is_news: bool) -> Change {
        if !self.is_needed(name, is_news) {
            return Change::None;
        }
        if leaves {
            return self.miss(name);
        }
        self.leaving.remove(name);
        let before = self.present.insert(name.to_owned(), generation);
        let is_changed = before.map_or(is_news, |before| before != generation);
        self.expecting |= is_changed;
        if is_changed || !kinds.serves_crd(name) { Change::Perhaps } else { Change::None }
    }

    /// Takes that a definition is gone, or about to go.
    pub(super) fn miss(&mut self, name: &str) -> Change {
        if !self.is_needed(name, true) {
            return Change::None;
        }
        self.present.remove(name);
        self.leaving.insert(name.to_owned());
        Change::Goes
    }

    /// Those that are known and not among these.
    pub(super) fn lost(&self, all: &BTreeSet<(String, String)>) -> Vec<String> {
        let is_there = |name: &&String| all.contains(&(String::new(), (*name).clone()));
        self.present.keys().filter(|name| !is_there(name)).cloned().collect()
    }

    fn is_needed(&mut self, name: &str, is_news: bool) -> bool {
        let is_needed = name.split_once('.').is_some_and(|(_, group)| self.groups.contains(group));
        self.unsure |= is_news && !is_needed;
        is_needed
    }

    /// Asks the server soon: something has changed.
    pub(super) fn ask_soon(&mut self, server: &Server, kinds: &Kinds) {
        self.tries = 0;
        let now = Instant::now();
        match self.planned {
            Some(moment) if moment <= now => self.once_more = true,
            Some(moment) if moment <= now + FIRST => {}
            _ => self.plan(server, kinds, FIRST),
        }
    }

    fn plan(&mut self, server: &Server, kinds: &Kinds, wait: Duration) {
        self.asking.abort_all();
        self.planned = Some(Instant::now() + wait);
        self.unsure = false;
        let (server, tag) = (server.clone(), kinds.tag().to_owned());
        self.asking.spawn(async move {
            tokio::time::sleep(wait).await;
            discover_groups(&server, &tag).await
        });
    }

    /// The next answer; nothing while none is asked for.
    pub(super) async fn next(&mut self) -> Option<Result<Option<Groups>, Failure>> {
        loop {
            // One that was given up for an earlier one is none.
            if let Ok(answer) = self.asking.join_next().await? {
                return Some(answer);
            }
        }
    }

    /// Takes an answer into what is served; whether it was another one. What is still to come is asked for again.
    pub(super) fn take(&mut self, answer: Result<Option<Groups>, Failure>, server: &Server, kinds: &mut Kinds) -> bool {
        self.planned = None;
        let is_failure = answer.is_err();
        let is_changed = match answer {
            Ok(Some(groups)) => {
                kinds.take(groups);
                self.expecting = false;
                // What is no longer claimed to be served has been forgotten by the server, too.
                self.leaving.retain(|name| kinds.drop_crd(name));
                true
            }
            Ok(None) => false,
            Err(failure) => {
                tracing::warn!("could not ask the API server what it serves: {failure}; trying again");
                false
            }
        };
        if std::mem::take(&mut self.once_more) {
            self.ask_soon(server, kinds);
        } else if is_failure || (self.is_behind(kinds) && self.tries < TRIES) {
            self.tries += 1;
            self.plan(server, kinds, (FIRST * (1 << self.tries.min(10))).min(LAST));
        }
        is_changed
    }

    /// Whether the server should serve something that it does not serve yet.
    fn is_behind(&mut self, kinds: &Kinds) -> bool {
        self.expecting &= self.tries < TRIES_AFTER_CHANGE;
        self.expecting || self.present.keys().any(|name| !kinds.serves_crd(name))
    }
}

/// What the files of a catalogue say they need and the server does not serve.
pub(crate) fn absent<'a>(catalog: &'a Catalog, kinds: &'a Kinds) -> impl Iterator<Item = Need> + 'a {
    catalog.assets.iter().flat_map(Need::all_of).filter(|need| match need {
        Need::Kind { api_version, kind } => kinds.find(&Kind::new(api_version, kind)).is_none(),
        Need::Crd { name } => !kinds.serves_crd(name),
    })
}

#[cfg(test)]
mod tests {
    use super::{Change, Discovery};
    use catalog::{Catalog, Files};
    use cluster::Kinds;
    use std::collections::BTreeMap;

    #[test]
    fn only_a_change_of_a_definition_that_matters_makes_us_ask() {
        let assets = "assets: [{name: a, path: active/a.yaml, install: always, gate_crd: gates.needed.io}]";
        let files = BTreeMap::from([
            ("active/metadata.yaml".to_owned(), format!("{assets}\nexcluded_assets: [a]\n").into_bytes()),
            ("active/a.yaml".to_owned(), b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_vec()),
        ]);
        let (mut discovery, kinds) = (Discovery::new(&Catalog::load(Files::new(files)).unwrap()), Kinds::default());
        let mut see = |name: &str, generation: i64, leaves: bool| discovery.see(&kinds, name, generation, leaves, true);
        assert_eq!(see("others.other.io", 1, false), Change::None, "nothing needs its group");
        assert_eq!(see("others.other.io", 1, true), Change::None);
        assert_eq!(see("gates.needed.io", 1, false), Change::Perhaps);
        assert_eq!(see("gates.needed.io", 1, false), Change::Perhaps, "it is not served yet");
        assert_eq!(see("gates.needed.io", 1, true), Change::Goes);
        assert!(discovery.unsure && discovery.present.is_empty(), "nothing is kept of what is not needed");
    }
}

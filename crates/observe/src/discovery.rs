//! When to ask the server what it serves: after a change of a CRD that matters, and never without one.

use catalog::{Catalog, Need};
use catalog::{FACT_SOURCES, GOVERNING};
use change::{Backoff, Kind, Moment};
use protocol::{Discovered, Kinds};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// CRDs are installed in bunches, and the server needs a moment to serve one.
const FIRST: Duration = Duration::from_millis(25);
/// A server that lags behind is asked no more often than this.
const BACKOFF: Backoff = Backoff { first: FIRST, longest: Duration::from_secs(5) };
/// A server that has never answered is asked again after this.
const UNREACHABLE: Backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };
/// A CRD that is not served yet is asked for this often, within some 45 seconds; then only another change makes us ask.
const TRIES: u32 = 16;
/// Whether a changed CRD is served differently is asked this often, within two seconds: most changes do not affect that.
const TRIES_AFTER_CHANGE: u32 = 6;

/// What is served, and what is known of the CRDs in groups that something needs.
#[derive(Debug, Default)]
pub struct Discovery {
    /// What is served.
    pub kinds: Kinds,
    /// Whether all CRDs were listed once.
    pub has_listed_crds: bool,
    /// Whether the server has answered at all.
    pub is_complete: bool,
    groups: BTreeSet<String>,
    /// The CRDs by name, each with its generation.
    present: BTreeMap<String, i64>,
    /// CRDs that are deleted, as long as the server may still claim to serve them.
    deleted: BTreeSet<String>,
    /// Kinds that only templates name.
    rendered: BTreeSet<Kind>,
    /// Whether a CRD of another group has changed since the last answer.
    unsure: bool,
    /// Whether a CRD has changed and the server still serves what it did before.
    expecting: bool,
    failures: u32,
    /// When the server is asked next.
    planned: Option<Moment>,
    in_flight: bool,
    /// Whether something has changed since the request in flight was sent.
    repeat: bool,
}

/// What a change of a CRD means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrdChange {
    /// Nothing.
    None,
    /// Its kind may be served differently now.
    MayBeServed,
    /// It is deleted.
    Deleted,
}

impl Discovery {
    /// For a catalogue; nothing is known yet.
    pub fn new(catalog: &Catalog) -> Discovery {
        let mut groups = BTreeSet::from([api::hco::GROUP.to_owned()]);
        groups.extend(
            FACT_SOURCES.iter().chain([&GOVERNING]).map(|source| Kind::new(source.api_version, source.kind).group),
        );
        groups.extend(catalog.all_assets().flat_map(Need::all_of).map(|need| need.labels().group));
        groups.extend(catalog.tombstones.iter().map(|former| Kind::new(&former.api_version, &former.kind).group));
        Discovery { groups, ..Discovery::default() }
    }

    /// For kinds of these groups; nothing is known yet.
    pub fn of_groups<'a>(groups: impl IntoIterator<Item = &'a str>) -> Discovery {
        Discovery { groups: groups.into_iter().map(str::to_owned).collect(), ..Discovery::default() }
    }

    /// Adds the group of a kind that something needs; whether an absent kind is certainly not served.
    pub fn is_sure_of(&mut self, kind: &Kind) -> bool {
        let is_asking = self.planned.is_some() || self.in_flight;
        if self.groups.insert(kind.group.clone()) { !self.unsure } else { !is_asking }
    }

    /// Adds a kind that a template renders and the server does not serve; false if it is known.
    pub fn add_rendered(&mut self, kind: &Kind) -> bool {
        self.groups.insert(kind.group.clone());
        self.rendered.insert(kind.clone())
    }

    /// What the catalogue needs and the server does not serve.
    pub fn absent(&self, catalog: &Catalog) -> BTreeSet<Need> {
        let is_absent = |need: &Need| match need {
            Need::Kind { api_version, kind } => self.kinds.find(&Kind::new(api_version, kind)).is_none(),
            Need::Crd { name } => !self.kinds.serves_crd(name),
        };
        let needed = catalog.all_assets().flat_map(Need::all_of).filter(is_absent);
        let rendered = self.rendered.iter().filter(|kind| self.kinds.find(kind).is_none()).map(Need::of);
        needed.chain(rendered).collect()
    }

    /// Whether a CRD is known in this generation.
    pub fn knows(&self, name: &str, generation: i64) -> bool {
        self.present.get(name) == Some(&generation)
    }

    /// Takes a CRD as it is now. `is_news` is false during the first list.
    pub fn observe(&mut self, name: &str, generation: i64, is_deleting: bool, is_news: bool) -> CrdChange {
        if !self.is_needed(name, is_news) {
            return CrdChange::None;
        }
        if is_deleting {
            return self.observe_deleted(name);
        }
        self.deleted.remove(name);
        let before = self.present.insert(name.to_owned(), generation);
        let is_changed = before.map_or(is_news, |before| before != generation);
        self.expecting |= is_changed;
        if is_changed || !self.kinds.serves_crd(name) { CrdChange::MayBeServed } else { CrdChange::None }
    }

    /// Takes that a CRD is deleted, or about to be.
    pub fn observe_deleted(&mut self, name: &str) -> CrdChange {
        if !self.is_needed(name, true) {
            return CrdChange::None;
        }
        self.present.remove(name);
        self.deleted.insert(name.to_owned());
        CrdChange::Deleted
    }

    /// The known CRDs that are not among these.
    pub fn known_except(&self, all: &BTreeSet<(String, String)>) -> Vec<String> {
        let exists = |name: &&String| all.contains(&(String::new(), (*name).clone()));
        self.present.keys().filter(|name| !exists(name)).cloned().collect()
    }

    fn is_needed(&mut self, name: &str, is_news: bool) -> bool {
        let is_needed = name.split_once('.').is_some_and(|(_, group)| self.groups.contains(group));
        self.unsure |= is_news && !is_needed;
        is_needed
    }

    /// Asks soon, because something has changed; when, unless that is planned already.
    pub fn ask_soon(&mut self, now: Moment) -> Option<Moment> {
        self.failures = 0;
        if self.in_flight {
            self.repeat = true;
            return None;
        }
        self.plan(now.after(FIRST))
    }

    /// Whether an answer is on its way.
    pub fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    fn plan(&mut self, at: Moment) -> Option<Moment> {
        if self.planned.is_some_and(|planned| planned <= at) {
            return None;
        }
        self.planned = Some(at);
        Some(at)
    }

    /// The request is sent now; the tag of the last answer, or nothing for a complete one.
    pub fn begin(&mut self) -> Option<String> {
        (self.planned, self.in_flight, self.unsure) = (None, true, false);
        self.is_complete.then(|| self.kinds.tag().to_owned())
    }

    /// Takes an answer; whether anything else is served now, and when to ask again.
    pub fn take(&mut self, answer: Result<Discovered, String>, now: Moment) -> (bool, Option<Moment>) {
        self.in_flight = false;
        let is_failure = answer.is_err();
        let is_changed = match answer {
            Ok(Discovered::All(kinds)) => {
                (self.kinds, self.is_complete, self.failures) = (kinds, true, 0);
                true
            }
            Ok(Discovered::Groups(groups)) => {
                self.kinds.take(groups);
                self.expecting = false;
                // The server has forgotten a deleted CRD once it does not claim to serve it any more.
                self.deleted.retain(|name| self.kinds.drop_crd(name));
                true
            }
            Ok(Discovered::Unchanged) | Err(_) => false,
        };
        if !self.is_complete {
            let pause = UNREACHABLE.pause(self.failures);
            self.failures += 1;
            return (false, self.plan(now.after(pause)));
        }
        if std::mem::take(&mut self.repeat) {
            return (is_changed, self.ask_soon(now));
        }
        if is_failure || (self.is_behind() && self.failures < TRIES) {
            self.failures += 1;
            return (is_changed, self.plan(now.after(BACKOFF.pause(self.failures))));
        }
        (is_changed, None)
    }

    /// Whether the server should serve something that it does not serve yet.
    fn is_behind(&mut self) -> bool {
        self.expecting &= self.failures < TRIES_AFTER_CHANGE;
        self.expecting || self.present.keys().any(|name| !self.kinds.serves_crd(name))
    }
}

#[cfg(test)]
mod tests;

//! What follows when kinds come, change their version or go while we run.

use super::discovery::{Change, definitions};
use super::engine::Engine;
use super::places::Place;
use super::questions::place_of;
use catalog::Answer;
use catalog::FACT_SOURCES;
use cluster::kinds::Groups;
use cluster::request::Failure;
use cluster::watch::{Content, Seen};
use std::collections::BTreeSet;

impl Engine {
    /// Takes what the watch of definitions saw; whether questions about that definition have to be asked again.
    pub(super) fn take_definition(&mut self, seen: &Seen) -> bool {
        let is_news = self.places.is_listed(&definitions());
        let mut is_another = true;
        let change = match seen {
            Seen::Present { name, generation, live, .. } => {
                is_another = !self.discovery.knows(name, *generation);
                self.discovery.see(&self.kinds, name, *generation, live.deleting.is_some(), is_news)
            }
            Seen::Gone { name, .. } => self.discovery.miss(name),
            Seen::Listed { all, .. } => return self.take_definitions(all),
            Seen::Lost { .. } => return false,
        };
        match (change, seen) {
            (Change::Goes, Seen::Present { name, .. } | Seen::Gone { name, .. }) => self.drop_definition(&name.clone()),
            (Change::Perhaps, _) => self.discovery.ask_soon(&self.server, &self.kinds),
            _ => {}
        }
        is_another
    }

    /// Takes a whole list: what was missed meanwhile cannot be told from it, so after the first one the server is asked.
    fn take_definitions(&mut self, all: &BTreeSet<(String, String)>) -> bool {
        for name in self.discovery.lost(all) {
            self.discovery.miss(&name);
            self.drop_definition(&name);
        }
        if std::mem::replace(&mut self.knows_definitions, true) {
            self.discovery.ask_soon(&self.server, &self.kinds);
        }
        false
    }

    /// A definition goes, and with it all objects: that is nobody's edit.
    fn drop_definition(&mut self, name: &str) {
        if self.kinds.drop_crd(name) {
            self.follow_kinds();
        }
    }

    /// Takes what the server says it serves.
    pub(super) fn take_groups(&mut self, answer: Result<Option<Groups>, Failure>) {
        if self.discovery.take(answer, &self.server, &mut self.kinds) {
            self.follow_kinds();
        }
        // What nobody serves now is not there.
        for query in self.questions.all() {
            if self.kinds.find(&place_of(&query).kind).is_none() && !self.facts.answers.contains_key(&query) {
                self.facts.answers.insert(query, Answer::Absent);
                self.stale = true;
            }
        }
    }

    /// Watches what has come, and forgets what has gone.
    pub(super) fn follow_kinds(&mut self) {
        for place in self.places.unserved(&self.kinds) {
            self.leave(&place);
        }
        self.follow_hco();
        self.watch_world();
        for query in self.questions.all() {
            let place = place_of(&query);
            if self.kinds.find(&place.kind).is_none() {
                self.stale |= self.facts.answers.insert(query, Answer::Absent) != Some(Answer::Absent);
            } else if self.places.served(&place).is_none() {
                self.watch(&place);
            }
        }
        let absent = self.discovery.absent(&self.catalog, &self.kinds);
        if absent != self.facts.absent {
            (self.facts.absent, self.stale) = (absent, true);
        }
        self.say_missing();
    }

    /// Ends the watch of a place; whatever was known of its objects is not known any more.
    fn leave(&mut self, place: &Place) {
        self.places.stop(place);
        self.items.iter_mut().filter(|(key, _)| Place::of(key) == *place).for_each(|(_, item)| item.forget());
        self.leave_world(place);
        self.stale = true;
    }

    /// Ends the watches of places in which nothing is kept and nothing was asked about; what nobody wants there was seen by now.
    pub(super) fn leave_unneeded(&mut self) {
        let mut needed: BTreeSet<Place> = self.items.keys().map(Place::of).collect();
        needed.extend(self.questions.all().iter().map(place_of));
        needed.extend([Place::of(&self.hco), definitions()]);
        needed.extend(FACT_SOURCES.iter().map(|source| Place::all(source.api_version, source.kind)));
        for place in self.places.all_but(&needed) {
            self.leaving.has_seen(&place, self.places.is_listed(&place));
            self.places.stop(&place);
        }
    }

    /// The HyperConverged in the newest version that is served; without one nobody says what is wanted.
    fn follow_hco(&mut self) {
        let newest = self.kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND);
        let Some((kind, _)) = newest else {
            if !self.facts.hco.is_null() || !self.knows_definitions {
                tracing::warn!("the API server does not serve HyperConverged; waiting until its operator is installed");
            }
            return self.freeze();
        };
        if kind != self.hco.kind {
            self.leave(&Place::of(&self.hco));
            self.hco.kind = kind;
        }
        if self.places.served(&Place::of(&self.hco)).is_none() {
            self.places.watch(&self.kinds, &Place::of(&self.hco), Content::Whole);
        }
    }

    /// Readiness names the kinds of which nothing is known yet. One that no asset can have without its operator is not among them.
    pub(super) fn say_missing(&self) {
        let mut missing = self.places.missing();
        if self.places.served(&Place::of(&self.hco)).is_none() {
            missing.insert(0, format!("{}, which the API server does not serve", api::hco::KIND));
        }
        self.settings.missing.send_if_modified(|told| std::mem::replace(told, missing) != *told);
    }
}

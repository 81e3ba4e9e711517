//! Nodes, pools and cluster-wide settings, kept up to date by watches.

use super::engine::Engine;
use super::places::Place;
use catalog::{FACT_SOURCES, FactSource};
use cluster::watch::{Body, Content, Seen};

impl Engine {
    /// Watches what facts are read from, as far as it is served.
    pub(super) fn watch_world(&mut self) {
        for source in &FACT_SOURCES {
            let place = Place::all(source.api_version, source.kind);
            if self.places.served(&place).is_some() {
                continue;
            }
            // Until everything was told once nothing is rendered; later what is known still holds.
            if self.places.watch(&self.kinds, &place, Content::Part) && source.first && !self.has_rendered {
                self.awaited.insert(place);
            }
        }
    }

    /// Takes what a watch saw, if facts are read from it.
    pub(super) fn take_world(&mut self, place: &Place, seen: &Seen) {
        let Some(source) = source_of(place) else { return };
        match seen {
            Seen::Present { body: Body::Part(part), .. } => self.world.put(part.clone()),
            Seen::Gone { name, .. } => self.world.retain(source.kind, |known| known != name),
            Seen::Listed { all, .. } => {
                self.world.retain(source.kind, |known| all.contains(&(String::new(), known.to_owned())));
                self.awaited.remove(place);
            }
            Seen::Present { .. } | Seen::Lost { .. } => return,
        }
        self.is_world_changed = true;
    }

    /// What is not served is not there.
    pub(super) fn leave_world(&mut self, place: &Place) {
        if let Some(source) = source_of(place) {
            self.world.retain(source.kind, |_| false);
            self.awaited.remove(place);
            self.is_world_changed = true;
        }
    }

    /// Takes all changes so far at once, and renders if they matter to any asset.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.is_world_changed) {
            self.stale |= self.world.update(&mut self.facts);
        }
        // Without a HyperConverged nobody says what is wanted, and a cluster of which nothing is known is not an empty one.
        while self.stale && !self.facts.hco.is_null() && self.awaited.is_empty() {
            (self.stale, self.has_rendered) = (false, true);
            self.render();
        }
    }
}

fn source_of(place: &Place) -> Option<&'static FactSource> {
    let is_it = |source: &&FactSource| source.kind == place.kind.kind && source.api_version == place.kind.api_version();
    FACT_SOURCES.iter().find(is_it)
}

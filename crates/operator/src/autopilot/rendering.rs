//! From what is wanted now to items, watches, questions, and to what is not wanted any more.

use super::engine::Engine;
use super::item::{Item, Seen};
use super::leaving::{Candidate, SpokenFor};
use super::missing::Missing;
use super::places::Place;
use super::{journal, platform};
use autopilot::Cause;
use change::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Engine {
    /// Renders everything anew, asks what templates want to know, and looks at every object.
    pub(super) fn render(&mut self) {
        let wanted = platform::want(&self.catalog, &self.facts, self.settings.opt_in, self.rules.as_ref());
        for kind in wanted.unserved(&self.kinds) {
            // Only its template tells the kind; it is rendered once more, and comes to nothing.
            self.stale |= self.discovery.name(&kind);
        }
        if self.stale {
            self.facts.absent = self.discovery.absent(&self.catalog, &self.kinds);
            return;
        }
        self.consent = wanted.consent;
        let frozen = wanted.held.is_some();
        self.is_frozen = frozen;
        if !frozen {
            self.rules = Some(wanted.rules);
        }
        if wanted.is_off && !self.is_off {
            self.tell_hco(journal::off(self.items.len()));
        }
        self.is_off = wanted.is_off;
        let mut complaints: BTreeSet<String> = wanted.held.iter().cloned().collect();
        let (mut unwanted, mut gone, mut spoken_for) = (BTreeMap::new(), Vec::new(), SpokenFor::default());
        let (mut kept, mut places) = (BTreeSet::<Key>::new(), BTreeSet::<Place>::new());
        let (mut asked, mut unread, mut missing) = (Vec::new(), Vec::new(), Missing::new());
        for outcome in wanted.outcomes {
            spoken_for.take(&outcome);
            let (object, excluded) = match outcome.result {
                platform::Result::Included(object) => (object, false),
                platform::Result::Filtered(object) => (object, true),
                platform::Result::Excluded(why) => {
                    if !wanted.is_off && !frozen {
                        gone.push((outcome.asset, why));
                    }
                    continue;
                }
                platform::Result::Missing { need, asked } => {
                    gone.push((outcome.asset.clone(), need.why()));
                    if asked {
                        missing.entry(need).or_default().push(outcome.asset);
                    }
                    continue;
                }
                platform::Result::Unwanted { cause, object, .. } => {
                    for (key, item) in self.items.iter_mut().filter(|(_, item)| item.asset == outcome.asset) {
                        (item.parting, item.frozen) = (Some(cause), frozen);
                        item.excluded = self.rules.as_ref().is_some_and(|rules| rules.excludes(key));
                        kept.insert(key.clone());
                    }
                    if let Some(platform::Object { key, impact, pool, source, stays, .. }) = object {
                        let (asset, order) = (outcome.asset, outcome.order);
                        unwanted.insert(key, Candidate { asset, order, cause, impact, source, stays, pool });
                    }
                    continue;
                }
                result @ (platform::Result::Error(_) | platform::Result::Needs(_)) => {
                    match result {
                        platform::Result::Needs(queries) => asked.extend(queries),
                        platform::Result::Error(why) => {
                            complaints.insert(format!("asset {}: {why}", outcome.asset));
                        }
                        _ => {}
                    }
                    // What was known of it still holds, but not against the user.
                    for (key, item) in self.items.iter_mut().filter(|(_, item)| item.asset == outcome.asset) {
                        item.frozen = frozen;
                        item.excluded = self.rules.as_ref().is_some_and(|rules| rules.excludes(key));
                        kept.insert(key.clone());
                    }
                    continue;
                }
            };
            let restarts = platform::restarts(self.world.nodes(), object.pool.as_deref());
            let fresh = || Item::new(object.wanted.clone());
            let item = self.items.entry(object.key.clone()).or_insert_with(fresh);
            item.want(&object, restarts);
            item.deletions = item.deletions.or_else(|| self.deletions.left(&object.key));
            (item.asset, item.order, item.frozen) = (outcome.asset, outcome.order, frozen);
            (item.excluded, item.was_wanted) = (excluded, true);
            let place = Place::of(&object.key);
            match self.places.served(&place) {
                None => {
                    item.forget();
                    places.insert(place);
                }
                // What a watch has told before is not told again.
                Some(_) if matches!(item.live, Seen::Unknown) && self.places.is_listed(&place) => {
                    unread.push(object.key.clone());
                }
                Some(_) => {}
            }
            kept.insert(object.key);
        }
        self.complain(complaints);
        self.say_not_applicable(&gone);
        self.tell_missing(missing);
        let (metrics, leaving) = (&self.settings.metrics, &mut self.leaving);
        self.items.retain(|key, item| {
            let is_kept = kept.contains(key) || (item.parting == Some(Cause::Tombstone) && !wanted.is_off);
            if !is_kept {
                metrics.forget(key);
                // It may be parted with later, and nobody tells of it again.
                if matches!(&item.live, Seen::Present(live) if live.labelled) {
                    leaving.see(key);
                }
            }
            is_kept
        });
        for place in places {
            self.watch(&place);
        }
        for key in unread {
            self.read(key, Duration::ZERO);
        }
        for query in asked {
            self.ask(query);
        }
        if wanted.is_off {
            // Nothing is done, not even to what former releases made.
            self.leaving.expect_nothing();
        } else {
            self.part_with(unwanted, &spoken_for);
        }
        self.leave_unneeded();
        self.ready.extend(self.items.iter().map(|(key, item)| (item.order, key.clone())));
    }

    /// Says which objects stay as they are because a fact has turned false.
    fn say_not_applicable(&self, gone: &[(String, String)]) {
        for (key, item) in &self.items {
            let why = gone.iter().find_map(|(asset, why)| (*asset == item.asset).then_some(why));
            if let (Some(why), Seen::Present(_)) = (why, &item.live) {
                self.tell_hco(journal::not_applicable(key, why));
            }
        }
    }

    /// Says what is wrong with the platform as a whole, once.
    fn complain(&mut self, complaints: BTreeSet<String>) {
        for complaint in complaints.difference(&self.complaints) {
            self.tell_hco(journal::complaint(complaint));
        }
        self.complaints = complaints;
    }

    pub(super) fn tell_hco(&self, told: cluster::event::Told) {
        self.teller.tell(&self.hco, &self.hco_uid, told, (self.settings.clock)());
    }
}

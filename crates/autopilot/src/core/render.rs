//! From what is wanted now to managed objects, watches, queries and removals.

use super::managed::{Known, Managed};
use super::reports::Missing;
use super::{Core, Stale};
use crate::evaluate::{AssetResult, DesiredObject, Exclusion, Outcome};
use crate::notice::Notice;
use crate::removal::Cause;
use catalog::Query;
use change::{Key, Kind};
use protocol::{Content, WatchTarget};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the assets come to, taken together.
#[derive(Default)]
struct Rendered {
    /// The objects that stay managed.
    kept: BTreeSet<Key>,
    /// What is wrong.
    complaints: BTreeSet<String>,
    /// Assets that do not apply here.
    not_applicable: Vec<(String, Exclusion)>,
    missing: Missing,
    queries: Vec<Query>,
}

impl Core {
    /// Renders if anything has changed that assets depend on, and everything is known that they need.
    pub(super) fn render_if_stale(&mut self) {
        if self.surroundings.update(&mut self.facts) {
            self.stale = Stale::All;
            // Without a HyperConverged nothing is rendered, and what exists is still kept.
            if self.platform.govern(&self.catalog, &self.facts, &self.outcomes) {
                self.objects.enqueue_all();
            }
        }
        let formerly_named = self.formers.formerly_named();
        if self.formers.have_doubles_changed() || self.facts.formerly_named != formerly_named {
            (self.facts.formerly_named, self.stale) = (formerly_named, Stale::All);
        }
        let is_known = !self.facts.hco.is_null() && self.surroundings.is_known() && self.records.is_attempted();
        while is_known && self.stale != Stale::No {
            self.has_rendered = true;
            self.render();
        }
    }

    /// Renders the assets that may have changed and decides about every object again.
    fn render(&mut self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        let is_all = std::mem::replace(&mut self.stale, Stale::No) == Stale::All;
        let evaluation = self.evaluate(if is_all { Vec::new() } else { outcomes });
        let unserved: Vec<Kind> =
            evaluation.kinds().filter(|kind| self.discovery.kinds.find(kind).is_none()).cloned().collect();
        for kind in unserved {
            // Only the template names this kind: it is rendered once more, and is missing then.
            if self.discovery.add_rendered(&kind) {
                self.stale = Stale::All;
            }
        }
        if self.stale == Stale::All {
            self.facts.absent = self.discovery.absent(&self.catalog);
            return;
        }
        if self.platform.take(&evaluation) {
            self.notify(Notice::SwitchedOff);
        }
        let mut rendered = Rendered::default();
        let unclear = evaluation.unclear.iter().map(ToString::to_string);
        self.advice = unclear.chain(evaluation.advice.iter().cloned()).chain(self.formers.advice()).collect();
        rendered.complaints.extend(self.advice.iter().cloned());
        let kinds = &self.discovery.kinds;
        let unwanted = evaluation.unwanted(&self.catalog.tombstones, |kind| Some(kinds.find(kind)?.namespaced));
        let is_off = evaluation.is_off;
        for outcome in &evaluation.outcomes {
            self.take_outcome(outcome, &mut rendered);
        }
        self.outcomes = evaluation.outcomes;
        self.platform.govern(&self.catalog, &self.facts, &self.outcomes);
        self.report_rendered(&mut rendered);
        let is_kept = |key: &Key, object: &Managed| {
            rendered.kept.contains(key) || (object.removal == Some(Cause::Tombstone) && !is_off)
        };
        let dropped: Vec<Key> =
            self.objects.iter().filter(|(key, object)| !is_kept(key, object)).map(|(key, _)| key.clone()).collect();
        for key in dropped {
            self.stop_managing(&key);
        }
        for query in rendered.queries {
            self.ask(query);
        }
        self.forget_deletions();
        self.expect_removals(unwanted);
        self.close_unneeded_watches();
        self.objects.enqueue_all();
    }

    fn take_outcome(&mut self, outcome: &Outcome, rendered: &mut Rendered) {
        let Outcome { asset, order, result, .. } = outcome;
        match result {
            AssetResult::Included(object) | AssetResult::Filtered(object) => {
                rendered.kept.insert(object.key.clone());
                self.manage(asset, *order, object.clone());
            }
            AssetResult::Governed { object: Some(object), .. } => {
                rendered.kept.insert(object.key.clone());
                self.manage(asset, *order, object.clone());
            }
            AssetResult::Governed { object: None, .. } => {
                for key in self.objects.keys_of_asset(asset) {
                    if let Some(object) = self.objects.get_mut(&key) {
                        object.want_again();
                    }
                    rendered.kept.insert(key);
                }
            }
            AssetResult::Unwanted { cause, .. } => {
                for key in self.objects.keys_of_asset(asset) {
                    if let Some(object) = self.objects.get_mut(&key) {
                        object.removal = Some(*cause);
                    }
                    rendered.kept.insert(key);
                }
            }
            AssetResult::Excluded(Exclusion::Off | Exclusion::Unclear(_)) => {}
            AssetResult::Excluded(why) => {
                if self.platform.suspended.is_none() {
                    rendered.not_applicable.push((asset.clone(), why.clone()));
                }
            }
            AssetResult::Missing { need, asked } => {
                rendered.not_applicable.push((asset.clone(), Exclusion::Missing(need.clone())));
                if *asked {
                    rendered.missing.entry(need.clone()).or_default().push(asset.clone());
                }
            }
            AssetResult::Needs(queries) => {
                rendered.queries.extend(queries.iter().cloned());
                rendered.kept.extend(self.wanted_keys_of(asset));
            }
            AssetResult::Error(why) => {
                rendered.complaints.insert(format!("asset {asset}: {why}"));
                rendered.kept.extend(self.wanted_keys_of(asset));
            }
        }
    }

    /// The objects of an asset that are not to be removed: whoever asks for an asset again does not want them removed, although it is not
    /// known what is wanted of them.
    fn wanted_keys_of(&self, asset: &str) -> Vec<Key> {
        let is_wanted = |key: &Key| self.objects.get(key).is_some_and(|object| object.removal.is_none());
        self.objects.keys_of_asset(asset).into_iter().filter(is_wanted).collect()
    }

    /// Manages an object as its asset renders it now.
    fn manage(&mut self, asset: &str, order: i64, desired: Arc<DesiredObject>) {
        let key = desired.key.clone();
        if self.objects.get(&key).is_none() {
            self.objects.insert(Managed::new(asset.to_owned(), order, desired.clone()));
        }
        let recorded = self.records.left(&key);
        let target = WatchTarget::of(&key);
        let (is_open, is_listed) = (self.watches.is_open(&target), self.watches.is_listed(&target));
        let Some(object) = self.objects.get_mut(&key) else { return };
        object.want(asset, order, desired);
        object.recreation = object.recreation.or(recorded);
        if !is_open {
            object.forget_live();
            self.watch(&target, Content::Metadata);
        } else if matches!(object.live, Known::Unknown) && is_listed {
            // The watch reported it before it was wanted, and will not again.
            self.refetch(&key);
        }
    }

    fn report_rendered(&mut self, rendered: &mut Rendered) {
        let mut notices = self.reports.complaints(std::mem::take(&mut rendered.complaints));
        for (key, object) in self.objects.iter() {
            let why = rendered.not_applicable.iter().find(|(asset, _)| *asset == object.asset);
            if let (Some((_, why)), Known::Present(_)) = (why, &object.live) {
                notices.push(Notice::NotApplicable(key.clone(), why.clone()));
            }
        }
        notices.extend(self.reports.missing(std::mem::take(&mut rendered.missing), &self.facts.absent));
        for notice in notices {
            self.notify(notice);
        }
    }
}

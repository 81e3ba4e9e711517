//! What watches report.

use super::estimates;
use super::managed::Known;
use super::platform::HCO_ABSENT;
use super::timers::Timer;
use super::{Core, Stale};
use crate::notice::Notice;
use change::{Key, Live};
use observe::CrdChange;
use protocol::{Body, WatchEvent, WatchTarget};
use serde_json::Value;
use std::collections::BTreeSet;

impl Core {
    /// Takes one report of a watch.
    pub(super) fn watched(&mut self, target: &WatchTarget, event: WatchEvent) {
        if !self.watches.is_open(target) {
            return;
        }
        let pools = self.surroundings.observe(target, &event);
        let is_list = matches!(event, WatchEvent::Listed { .. } | WatchEvent::Lost { .. });
        let is_known_crd = *target == WatchTarget::crds() && !self.crd_watched(&event);
        let key = |namespace: String, name: String| Key { kind: target.kind.clone(), namespace, name };
        match event {
            WatchEvent::Present { namespace, name, live, body, .. } => {
                let key = key(namespace, name);
                if key == self.platform.key
                    && let Body::Whole(hco) = body
                {
                    self.hco_watched(&live, hco);
                }
                self.formers.observe(&key, &live);
                if let Some(object) = self.objects.get_mut(&key) {
                    object.observe(live);
                    self.enqueue(&key);
                } else if live.labelled {
                    self.orphans.observe(&key);
                    self.remove_orphans();
                }
                if !is_known_crd {
                    self.repeat_queries(target, &key.name);
                }
            }
            WatchEvent::Gone { namespace, name, version } => {
                let key = key(namespace, name);
                if key == self.platform.key {
                    self.hco_absent();
                }
                self.orphans.observe_absent(&key);
                self.formers.observe_absent(&key);
                if let Some(object) = self.objects.get_mut(&key) {
                    object.observe_absent(version.parse().ok(), self.now.wall);
                    self.enqueue(&key);
                }
                self.repeat_queries(target, &key.name);
            }
            WatchEvent::Listed { all, version, verifies } => {
                self.listed(target, &all, &version);
                if verifies {
                    self.verify(target);
                }
            }
            WatchEvent::Unseen => self.lose_sight(target),
            WatchEvent::WentBack => {
                for key in self.objects.keys_of(target) {
                    if let Some(object) = self.objects.get_mut(&key) {
                        object.forget_live();
                        // The same version may have another content now.
                        object.inspected = None;
                    }
                }
                let why =
                    "the versions of the API server went back, as after a restore; everything is read again".to_owned();
                self.notify(Notice::WatchLost { kind: target.kind.kind.clone(), why });
            }
            WatchEvent::Lost { why, is_unserved } => {
                self.watches.lost(target);
                self.lose_sight(target);
                self.report_readiness();
                // The discovery is outdated: a CRD that was deleted before we watched is reported by nobody. An answer on its way says
                // whether the kind is still served; if it is, the watch fails again.
                if is_unserved && !self.discovery.is_in_flight() {
                    self.discover_soon();
                }
                self.notify(Notice::WatchLost { kind: target.kind.kind.clone(), why });
            }
        }
        if *target == estimates::pools() {
            if is_list || !pools.is_empty() {
                self.pools_changed(&pools);
            }
            if self.watches.is_listed(target) {
                self.follow_rollouts();
            }
        } else if *target == WatchTarget::all("v1", "Node") {
            self.count_restarts();
        }
    }

    /// What happens to the objects of a kind is not seen for a while.
    fn lose_sight(&mut self, target: &WatchTarget) {
        for key in self.objects.keys_of(target) {
            if let Some(object) = self.objects.get_mut(&key) {
                object.lose_sight();
                object.doubt_approval();
            }
        }
    }

    /// Takes a complete list: what it does not name does not exist.
    fn listed(&mut self, target: &WatchTarget, all: &BTreeSet<(String, String)>, version: &str) {
        self.watches.listed(target);
        self.report_readiness();
        let exists = |key: &Key| all.contains(&(key.namespace.clone(), key.name.clone()));
        if WatchTarget::of(&self.platform.key) == *target && !exists(&self.platform.key) {
            self.hco_absent();
        }
        self.formers.listed(target, exists);
        let (version, now) = (version.parse().ok(), self.now.wall);
        let mut unread = Vec::new();
        for key in self.objects.keys_of(target) {
            let Some(object) = self.objects.get_mut(&key) else { continue };
            if !exists(&key) {
                object.observe_absent(version, now);
                self.enqueue(&key);
            } else if matches!(object.live, Known::Unknown) {
                // It was reported before it was wanted.
                unread.push(key);
            }
        }
        for key in unread {
            self.refetch(&key);
        }
        for query in self.queries.about(target, None) {
            self.send_query(query);
        }
    }

    /// Compares the values of all objects of a kind: metadata does not show an apply with our field manager in the second of our own.
    fn verify(&mut self, target: &WatchTarget) {
        for key in self.objects.keys_of(target) {
            if let Some(object) = self.objects.get_mut(&key) {
                object.is_verified = false;
                self.enqueue(&key);
            }
        }
    }

    /// Takes the HyperConverged, if it has changed in anything that an asset can depend on.
    fn hco_watched(&mut self, live: &Live, mut hco: Value) {
        if self.platform.uid != live.uid {
            self.platform.uid.clone_from(&live.uid);
            self.notify(Notice::Subject(self.platform.key.clone(), live.uid.clone()));
        }
        (self.platform.created, self.platform.is_absent) = (live.created, false);
        if let Some(metadata) = hco.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !["managedFields", "resourceVersion", "generation"].contains(&key.as_str()));
        }
        if hco != self.facts.hco {
            (self.facts.hco, self.stale) = (hco, Stale::All);
        }
    }

    /// Without a HyperConverged nothing is created, and it is not for us to recreate it.
    fn hco_absent(&mut self) {
        self.suspend();
        if !std::mem::replace(&mut self.platform.is_absent, true) {
            let existed = !self.platform.uid.is_empty();
            self.notify(Notice::HyperConvergedAbsent { key: self.platform.key.clone(), existed });
        }
    }

    /// Nothing is created or removed until the HyperConverged is known again.
    pub(super) fn suspend(&mut self) {
        (self.platform.suspended, self.facts.hco) = (Some(HCO_ABSENT.to_owned()), Value::Null);
    }

    /// Takes what the watch of CRDs reports; whether queries about that CRD have to be repeated.
    fn crd_watched(&mut self, event: &WatchEvent) -> bool {
        let is_news = self.watches.is_listed(&WatchTarget::crds());
        match event {
            WatchEvent::Present { name, generation, live, .. } => {
                let is_known = self.discovery.knows(name, *generation);
                let change = self.discovery.observe(name, *generation, live.deleting.is_some(), is_news);
                self.crd_changed(change, name);
                !is_known
            }
            WatchEvent::Gone { name, .. } => {
                let change = self.discovery.observe_deleted(name);
                self.crd_changed(change, name);
                true
            }
            WatchEvent::Listed { all, .. } => {
                for name in self.discovery.known_except(all) {
                    let change = self.discovery.observe_deleted(&name);
                    self.crd_changed(change, &name);
                }
                // What has happened between two lists is unknown, so the server is asked.
                if std::mem::replace(&mut self.discovery.has_listed_crds, true) {
                    self.discover_soon();
                }
                false
            }
            WatchEvent::Unseen | WatchEvent::WentBack | WatchEvent::Lost { .. } => false,
        }
    }

    fn crd_changed(&mut self, change: CrdChange, name: &str) {
        match change {
            CrdChange::None => {}
            CrdChange::MayBeServed => self.discover_soon(),
            // Its objects are deleted with it: that is nobody's edit.
            CrdChange::Deleted => {
                if self.discovery.kinds.drop_crd(name) {
                    self.follow_kinds();
                }
            }
        }
    }

    pub(super) fn discover_soon(&mut self) {
        if let Some(at) = self.discovery.ask_soon(self.now.monotonic) {
            self.timers.set(Timer::Discover, at);
        }
    }
}

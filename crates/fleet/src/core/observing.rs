//! What is served and watched, and what watches report.

use super::claims::KIND as CLAIM;
use super::clusters::Hypervisor;
use super::entry::Entry;
use super::pools::ManagedPool;
use super::templates::ManagedTemplate;
use super::{Core, Due, Timer};
use crate::notice::Notice;
use crate::object::{Name, Object, fleet_kind};
use change::Live;
use observe::CrdChange;
use protocol::{Body, Command, Content, Discovered, WatchEvent, WatchTarget};
use serde_json::Value;
use std::collections::BTreeSet;

/// The kinds of the fleet.
const KINDS: [&str; 4] = ["HypervisorCluster", "HypervisorMachineTemplate", "RunnerPool", CLAIM];

/// The target of a kind of the fleet.
pub(super) fn target(kind: &str) -> WatchTarget {
    WatchTarget { kind: fleet_kind(kind), namespace: String::new(), name: String::new() }
}

impl Core {
    /// Asks the server what it serves.
    pub(super) fn discover(&mut self) {
        let tag = self.discovery.begin();
        self.commands.push(Command::Discover { tag });
    }

    fn discover_soon(&mut self) {
        if let Some(at) = self.discovery.ask_soon(self.now.monotonic) {
            self.timers.set(Timer::Discover, at);
        }
    }

    /// Takes what the server serves.
    pub(super) fn discovered(&mut self, answer: Result<Discovered, String>) {
        if let Err(why) = &answer {
            self.notify(Notice::DiscoveryFailed(why.clone()));
        }
        let is_first = !self.discovery.is_complete;
        let (is_changed, again) = self.discovery.take(answer, self.now.monotonic);
        if let Some(at) = again {
            self.timers.set(Timer::Discover, at);
        }
        if !self.discovery.is_complete {
            return;
        }
        if is_first {
            self.watch(&WatchTarget::crds(), Content::Names);
        }
        if is_changed {
            self.follow_kinds();
        }
        self.report_readiness();
    }

    /// Watches the kinds that are served now, and forgets those that are not.
    fn follow_kinds(&mut self) {
        for target in self.watches.unserved(&self.discovery.kinds) {
            if self.watches.close(&target) {
                self.commands.push(Command::Unwatch(target));
            }
        }
        for kind in KINDS {
            let target = target(kind);
            if !self.watches.is_open(&target) {
                self.watch(&target, Content::Whole);
            }
        }
    }

    fn watch(&mut self, target: &WatchTarget, content: Content) {
        if let Some(served) = self.watches.open(&self.discovery.kinds, target, content) {
            self.commands.push(Command::Watch { target: target.clone(), served, content });
        }
    }

    /// Watches the Secrets that hypervisors and pools name, and no others.
    pub(super) fn follow_secrets(&mut self) {
        let mut needed: BTreeSet<WatchTarget> = self.clusters.values().flat_map(Hypervisor::secret_targets).collect();
        needed.extend(self.forge_secrets());
        for target in needed.clone() {
            if !self.watches.is_open(&target) {
                self.watch(&target, Content::Names);
            }
        }
        needed.extend(KINDS.map(target));
        needed.insert(WatchTarget::crds());
        for target in self.watches.except(&needed) {
            if self.watches.close(&target) {
                self.commands.push(Command::Unwatch(target));
            }
        }
    }

    /// Takes one report of a watch.
    pub(super) fn watched(&mut self, target: &WatchTarget, event: WatchEvent) {
        if !self.watches.is_open(target) {
            return;
        }
        if *target == WatchTarget::crds() {
            self.crd_watched(&event);
        }
        match event {
            WatchEvent::Present { namespace, name, live, generation, body } => {
                let name = Name::new(&namespace, &name);
                match body {
                    Body::Whole(object) => self.seen(&target.kind.kind, name, &live, generation, object),
                    Body::None if target.kind.kind == "Secret" => self.secret_seen(&name, &live.resource_version),
                    Body::None | Body::Part(_) => {}
                }
            }
            WatchEvent::Gone { namespace, name, version } => match target.kind.kind.as_str() {
                "Secret" => self.secret_seen(&Name::new(&namespace, &name), &version),
                kind => self.gone(kind, &Name::new(&namespace, &name)),
            },
            WatchEvent::Listed { all, .. } => {
                self.watches.listed(target);
                self.is_informed |= KINDS.iter().all(|kind| self.watches.is_listed(&super::observing::target(kind)));
                self.listed_objects(&target.kind.kind, &all);
                self.report_readiness();
            }
            WatchEvent::Unseen => {}
            WatchEvent::WentBack => self.forget_versions(&target.kind.kind),
            WatchEvent::Lost { why, is_unserved } => {
                self.watches.lost(target);
                self.report_readiness();
                if is_unserved && !self.discovery.is_in_flight() {
                    self.discover_soon();
                }
                self.notify(Notice::WatchLost { kind: target.kind.kind.clone(), why });
            }
        }
    }

    fn seen(&mut self, kind: &str, name: Name, live: &Live, generation: i64, body: Value) {
        let pool = body["spec"]["runnerPoolRef"]["name"].as_str().map(|pool| name.beside(None, pool));
        let read = match kind {
            CLAIM => Object::read(name.clone(), live, generation, body).map(|claim| {
                let claim: crate::machine::Claim = claim;
                if let Some(pool) = &claim.spec.runner_pool_ref {
                    self.pool_claim_seen(&name.beside(None, &pool.name), &name);
                }
                self.claim_seen(claim);
            }),
            "HypervisorCluster" => Object::read(name.clone(), live, generation, body).map(|object| {
                let before = self.clusters.get_mut(&name).filter(|found| found.entry.object.uid == live.uid);
                let is_changed = match before {
                    Some(found) => {
                        let before = (found.entry.object.generation, found.entry.object.deleting);
                        let endpoint = found.entry.object.spec.endpoint.clone();
                        let is_news = found.entry.observe(object);
                        if found.entry.object.spec.endpoint != endpoint {
                            found.forget();
                        }
                        is_news && before != (generation, live.deleting)
                    }
                    None => {
                        let mut hypervisor = Hypervisor::new(Entry::new(object), self.config.concurrency.operations);
                        hypervisor.count_begun(&self.asked);
                        self.clusters.insert(name.clone(), hypervisor);
                        for claim in self.claims.keys().cloned().collect::<Vec<_>>() {
                            self.enroll(&claim);
                        }
                        true
                    }
                };
                if is_changed {
                    self.follow_secrets();
                    self.cluster_changed(&name);
                }
                self.due.insert(Due::Cluster(name.clone()));
            }),
            "HypervisorMachineTemplate" => Object::read(name.clone(), live, generation, body).map(|object| {
                let before = self.templates.get_mut(&name).filter(|found| found.entry.object.uid == live.uid);
                let is_changed = match before {
                    Some(found) => {
                        let before = found.entry.object.generation;
                        found.entry.observe(object) && before != generation
                    }
                    None => {
                        self.templates.insert(name.clone(), ManagedTemplate::new(Entry::new(object)));
                        true
                    }
                };
                if is_changed {
                    self.look_up(&name);
                    // What has failed because of the former template is tried at once with this one.
                    for claim in self.of_template.get(&name).into_iter().flatten() {
                        if let Some(managed) = self.claims.get_mut(claim) {
                            managed.retry_now(self.now.monotonic);
                        }
                        self.due.insert(Due::Claim(claim.clone()));
                    }
                    let pools = self.pools_of(&name);
                    self.due.extend(pools.into_iter().map(Due::Pool));
                }
                self.due.insert(Due::Template(name.clone()));
            }),
            "RunnerPool" => Object::read(name.clone(), live, generation, body).map(|object| {
                self.template_of_pool_due(&name);
                match self.pools.get_mut(&name).filter(|found| found.entry.object.uid == live.uid) {
                    Some(found) => {
                        found.entry.observe(object);
                    }
                    None => {
                        self.pools.insert(name.clone(), ManagedPool::new(Entry::new(object)));
                    }
                }
                self.template_of_pool_due(&name);
                self.forge_seen(&name);
                self.due.insert(Due::Pool(name.clone()));
            }),
            _ => Ok(()),
        };
        if kind == CLAIM {
            match &read {
                Ok(()) => self.unreadable.remove(&name),
                Err(_) => {
                    if let Some(pool) = &pool {
                        self.of_pool.entry(pool.clone()).or_default().insert(name.clone());
                        self.due.insert(Due::Pool(pool.clone()));
                    }
                    self.unreadable.insert(name.clone(), live.uid.clone())
                }
            };
        }
        if let Err(why) = read {
            self.notify(Notice::Unreadable { kind: kind.to_owned(), name, why });
        }
    }

    fn secret_seen(&mut self, name: &Name, version: &str) {
        let mut changed = Vec::new();
        for (cluster, found) in self.clusters.iter_mut().filter(|(cluster, _)| cluster.namespace == name.namespace) {
            let is_of = found.secret_targets().iter().any(|target| *target.name == *name.name);
            if is_of && found.secret_seen(&name.name, version) {
                changed.push(cluster.clone());
            }
        }
        for cluster in changed {
            self.cluster_changed(&cluster);
        }
        self.forge_secret_seen(name, version);
    }

    /// A template stays while a pool names it.
    fn template_of_pool_due(&mut self, pool: &Name) {
        let Some(managed) = self.pools.get(pool) else { return };
        self.due.insert(Due::Template(pool.beside(None, &managed.entry.object.spec.template_ref.name)));
    }

    fn gone(&mut self, kind: &str, name: &Name) {
        match kind {
            CLAIM => {
                if self.unreadable.remove(name).is_some() {
                    let pools = self.of_pool.iter_mut().filter(|(_, claims)| claims.contains(name));
                    for (pool, claims) in pools {
                        claims.remove(name);
                        self.due.insert(Due::Pool(pool.clone()));
                    }
                }
                self.forget_claim(name);
            }
            "HypervisorCluster" => {
                // Whoever has something on it, waits for it, or names it is reconciled.
                let found = self.clusters.remove(name);
                let claims = found.into_iter().flat_map(|found| found.members.into_iter().chain(found.waiting));
                self.due.extend(claims.map(Due::Claim));
                let templates = self.templates.iter().filter(|(_, managed)| managed.cluster() == *name);
                for (template, _) in templates {
                    let claims = self.of_template.get(template).into_iter().flatten().cloned();
                    self.due.extend(claims.map(Due::Claim));
                    self.due.insert(Due::Template(template.clone()));
                }
                self.follow_secrets();
                self.disconnect(name);
            }
            "HypervisorMachineTemplate" => {
                self.templates.remove(name);
                let claims = self.of_template.get(name).into_iter().flatten().cloned();
                self.due.extend(claims.map(Due::Claim));
            }
            "RunnerPool" => {
                self.template_of_pool_due(name);
                self.pools.remove(name);
                self.forge_gone(name);
            }
            _ => {}
        }
    }

    /// A complete list: what it does not name is gone.
    fn listed_objects(&mut self, kind: &str, all: &BTreeSet<(String, String)>) {
        let is_gone = |name: &&Name| !all.contains(&(name.namespace.to_string(), name.name.to_string()));
        let gone: Vec<Name> = match kind {
            CLAIM => self.claims.keys().chain(self.unreadable.keys()).filter(is_gone).cloned().collect(),
            "HypervisorCluster" => self.clusters.keys().filter(is_gone).cloned().collect(),
            "HypervisorMachineTemplate" => self.templates.keys().filter(is_gone).cloned().collect(),
            "RunnerPool" => self.pools.keys().filter(is_gone).cloned().collect(),
            _ => return,
        };
        for name in gone {
            self.gone(kind, &name);
        }
        if kind == CLAIM {
            self.pool_claims_listed();
            self.due.extend(self.pools.keys().cloned().map(Due::Pool));
        }
    }

    fn forget_versions(&mut self, kind: &str) {
        match kind {
            CLAIM => self.claims.values_mut().for_each(|found| found.entry.forget_version()),
            "HypervisorCluster" => self.clusters.values_mut().for_each(|found| found.entry.forget_version()),
            "HypervisorMachineTemplate" => self.templates.values_mut().for_each(|found| found.entry.forget_version()),
            "RunnerPool" => self.pools.values_mut().for_each(|found| found.entry.forget_version()),
            _ => {}
        }
    }

    fn crd_watched(&mut self, event: &WatchEvent) {
        match event {
            WatchEvent::Present { name, live, generation, .. } => {
                let is_news = self.discovery.has_listed_crds;
                let change = self.discovery.observe(name, *generation, live.deleting.is_some(), is_news);
                self.crd_changed(change, name);
            }
            WatchEvent::Gone { name, .. } => {
                let change = self.discovery.observe_deleted(name);
                self.crd_changed(change, name);
            }
            WatchEvent::Listed { all, .. } => {
                for name in self.discovery.known_except(all) {
                    let change = self.discovery.observe_deleted(&name);
                    self.crd_changed(change, &name);
                }
                if std::mem::replace(&mut self.discovery.has_listed_crds, true) {
                    self.discover_soon();
                }
            }
            WatchEvent::Unseen | WatchEvent::WentBack | WatchEvent::Lost { .. } => {}
        }
    }

    fn crd_changed(&mut self, change: CrdChange, name: &str) {
        match change {
            CrdChange::None => {}
            CrdChange::MayBeServed => self.discover_soon(),
            CrdChange::Deleted => {
                if self.discovery.kinds.drop_crd(name) {
                    self.follow_kinds();
                }
            }
        }
    }

    /// Reports the kinds whose objects are not known. Secrets are not waited for: the hypervisor says whether they suffice.
    fn report_readiness(&mut self) {
        let mut waiting: Vec<String> =
            self.watches.unlisted().filter(|kind| *kind != "Secret").map(str::to_owned).collect();
        waiting.dedup();
        if !self.discovery.is_complete {
            waiting.push("the API server".to_owned());
        }
        self.commands.push(Command::Readiness(waiting));
    }
}

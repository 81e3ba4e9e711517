//! Templates: looked up on their hypervisor when they change, and every five minutes.

use super::asking::What;
use super::entry::Entry;
use super::pools::ManagedPool;
use super::{Core, Due, Timer};
use crate::cluster::Keep;
use crate::hypervisor::{Operation, TemplateRef};
use crate::notice::Notice;
use crate::object::Name;
use crate::template::{self, LookedUp, Observed};
use api::fleet::{FailureClass, HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus, IN_USE_FINALIZER};
use protocol::Command;
use std::collections::BTreeSet;
use std::time::Duration;

const KIND: &str = "HypervisorMachineTemplate";
/// A template that vanishes is noticed within this.
const LOOK_UP_EVERY: Duration = Duration::from_secs(300);
const LOOK_UP_AGAIN: Duration = Duration::from_secs(15);

/// A template and what is known of it.
#[derive(Debug)]
pub(super) struct ManagedTemplate {
    pub(super) entry: Entry<HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus>,
    pub(super) is_valid: bool,
    pub(super) why: String,
    reported: Option<(bool, &'static str)>,
}

impl ManagedTemplate {
    pub(super) fn new(entry: Entry<HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus>) -> ManagedTemplate {
        ManagedTemplate { entry, is_valid: false, why: String::new(), reported: None }
    }

    /// CPUs and memory of one machine.
    pub(super) fn size(&self) -> Option<(u32, u64)> {
        let resources = &self.entry.object.spec.resources;
        Some((resources.cpu, resources.memory.bytes()?))
    }

    /// Its hypervisor.
    pub(super) fn cluster(&self) -> Name {
        let reference = &self.entry.object.spec.hypervisor_cluster_ref;
        self.entry.object.name.beside(reference.namespace.as_deref(), &reference.name)
    }
}

impl Core {
    /// Looks up a template now.
    pub(super) fn look_up(&mut self, name: &Name) {
        let Some(managed) = self.templates.get(name) else { return };
        let (cluster, reference) = (managed.cluster(), template::reference(&managed.entry.object.spec));
        self.timers.set(Timer::LookUp(name.clone()), self.now.monotonic.after(LOOK_UP_EVERY));
        let (Some(reference), Some(hypervisor)) = (reference, self.clusters.get_mut(&cluster)) else { return };
        if !hypervisor.looking_up.insert(reference.clone()) {
            return;
        }
        self.ask(&cluster, Operation::FindTemplate(reference.clone()), What::LookUp(reference));
    }

    /// Takes the answer to a look-up.
    pub(super) fn looked_up(&mut self, cluster: &Name, reference: &TemplateRef, result: LookedUp) {
        let again = self.now.monotonic.after(LOOK_UP_AGAIN);
        let Some(hypervisor) = self.clusters.get_mut(cluster) else { return };
        hypervisor.looking_up.remove(reference);
        let is_passing = matches!(result, Err((FailureClass::Transient | FailureClass::Resource, _)));
        let has_failed = result.is_err();
        // A hypervisor that does not answer has not lost its template.
        if !is_passing || !matches!(hypervisor.found.get(reference), Some(Ok(_))) {
            hypervisor.found.insert(reference.clone(), result);
        }
        let of_it = |managed: &ManagedTemplate| {
            managed.cluster() == *cluster && template::reference(&managed.entry.object.spec).as_ref() == Some(reference)
        };
        let names: Vec<Name> =
            self.templates.iter().filter(|(_, managed)| of_it(managed)).map(|(name, _)| name.clone()).collect();
        for name in names {
            if has_failed {
                self.timers.set(Timer::LookUp(name.clone()), again);
            }
            self.due.insert(Due::Template(name));
        }
    }

    /// The pools that name a template and are to stay.
    pub(super) fn pools_of(&self, template: &Name) -> BTreeSet<Name> {
        let names = |pool: &Name, managed: &ManagedPool| {
            let object = &managed.entry.object;
            object.deleting.is_none() && pool.beside(None, &object.spec.template_ref.name) == *template
        };
        self.pools.iter().filter(|(pool, managed)| names(pool, managed)).map(|(pool, _)| pool.clone()).collect()
    }

    /// Reconciles a template.
    pub(super) fn reconcile_template(&mut self, name: &Name) {
        let Some(managed) = self.templates.get(name) else { return };
        let hypervisor = self.clusters.get(&managed.cluster());
        let reference = template::reference(&managed.entry.object.spec);
        let (none, pools) = (BTreeSet::new(), self.pools_of(name));
        let decision = template::decide(&Observed {
            template: &managed.entry.object,
            cluster: hypervisor.map(|found| (&found.entry.object, found.is_ready)),
            found: hypervisor.zip(reference.as_ref()).and_then(|(found, reference)| found.found.get(reference)),
            listed: hypervisor.and_then(|found| found.listed.as_deref()),
            users: self.of_template.get(name).unwrap_or(&none),
            pools: &pools,
            now: self.now,
        });
        let now = self.now.monotonic;
        let Some(managed) = self.templates.get_mut(name) else { return };
        let is_turned = std::mem::replace(&mut managed.is_valid, decision.is_valid) != decision.is_valid;
        managed.why.clone_from(&decision.message);
        let (uid, said) = (managed.entry.object.uid.clone(), (decision.is_valid, decision.reason));
        let is_news = managed.reported.replace(said) != Some(said);
        if managed.entry.is_writable(now) {
            let (entry, kinds) = (&mut managed.entry, &self.discovery.kinds);
            let write = match decision.keep {
                Keep::Add => entry.finalizer(KIND, kinds, IN_USE_FINALIZER, true),
                Keep::Remove => entry.finalizer(KIND, kinds, IN_USE_FINALIZER, false),
                Keep::AsIs if decision.status != entry.object.status => entry.status(KIND, kinds, decision.status),
                Keep::AsIs => None,
            };
            self.commands.extend(write.map(|write| Command::Write(Box::new(write))));
        }
        if is_news {
            let (is_valid, reason, message) = (decision.is_valid, decision.reason, decision.message);
            self.notify(Notice::Template { name: name.clone(), uid, is_valid, reason, message });
        }
        if is_turned {
            let claims = self.of_template.get(name).into_iter().flatten().cloned();
            self.due.extend(claims.map(Due::Claim));
            self.due.extend(pools.into_iter().map(Due::Pool));
        }
    }
}

//! Claims: what is known of each, and carrying out what was decided.

use super::asking::{What, needs_slot};
use super::entry::Entry;
use super::guests::Hosted;
use super::packing::{Packed, Texts};
use super::times::Times;
use super::{Core, Due, Timer};
use crate::blueprint::{self, host_name};
use crate::cloud_init;
use crate::conditions;
use crate::hypervisor::{Blueprint, GuestNetwork, MachineId, Operation};
use crate::machine::{self, Claim, Decision, Failed, Ground, Halted, Observed, REQUESTS_LAST, Sight, Since, Step};
use crate::notice::Notice;
use crate::object::Name;
use crate::placement;
use api::fleet::{
    CLEANUP_FINALIZER, ClaimPhase, MachineClaimSpec, MachineClaimStatus, NetworkInfo, ReadinessSignal, Span, VmRef,
};
use change::{Moment, Now};
use jiff::Timestamp;
use protocol::Command;
use std::time::Duration;

pub(super) const KIND: &str = "MachineClaim";
/// A pool does not wait for longer for a machine that cannot be made, unless it says otherwise.
const PROVISIONING_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A claim and what is known of its machine.
#[derive(Debug)]
pub(super) struct Managed {
    pub(super) entry: Entry<MachineClaimSpec, MachineClaimStatus>,
    pub(super) sight: Sight,
    /// The request in flight about its machine.
    pub(super) operation: Option<u64>,
    pub(super) failed: Option<Failed>,
    pub(super) unresolved_until: Moment,
    /// The machine that is about to be recorded.
    pub(super) intended: Option<VmRef>,
    /// Under which hypervisor and id it is enrolled.
    pub(super) enrolled: Option<(Name, MachineId)>,
    pub(super) guest: GuestNetwork,
    pub(super) asked_guest: Option<Moment>,
    /// Why that was not answered.
    pub(super) guest_trouble: Option<String>,
    /// What its hypervisor says, if it has halted it.
    pub(super) halted: Option<Box<Halted>>,
    /// Whether it has taken its cloud-init data.
    pub(super) is_seeded: bool,
    /// When the last operation on its machine ended: an older list says nothing.
    pub(super) touched: Moment,
    pub(super) host_name: Box<str>,
    /// What is known of its runner, if it is for one.
    pub(super) runner: Option<Box<Hosted>>,
    pub(super) times: Times,
    /// What was reported last.
    reported: Option<(ClaimPhase, u64)>,
    /// Its conditions while nothing is decided about it; its status has none then, and what its guest has reported is in its status alone.
    packed: Option<Packed>,
}

impl Managed {
    /// Takes the times that its claim says.
    fn follow_times(&mut self, now: Now) {
        let turned = if self.entry.object.is_switched(api::fleet::DRAIN) { self.turned() } else { None };
        let claim = &self.entry.object;
        let times = &mut self.times;
        times.created.follow(Some(claim.created), now);
        times.follow_status(&claim.status, now);
        times.draining.follow(turned, now);
        times.deleting.follow(claim.deleting, now);
    }

    /// When its claim was created.
    pub(super) fn created(&self, now: Now) -> Timestamp {
        self.times.created.at(now).unwrap_or(self.entry.object.created)
    }

    /// The id of its machine, if it is recorded.
    pub(super) fn machine_id(&self) -> Option<MachineId> {
        self.entry.object.status.vm_ref.as_ref().map(|vm_ref| MachineId(vm_ref.vm_id.clone()))
    }

    /// What has failed is tried again at once.
    pub(super) fn retry_now(&mut self, now: Moment) {
        if let Some(failed) = &mut self.failed {
            failed.retry_at = failed.retry_at.min(now);
        }
    }

    /// When its condition Ready has changed last.
    pub(super) fn turned(&self) -> Option<Timestamp> {
        let packed = self.packed.as_ref().map(Packed::conditions).unwrap_or_default();
        let mut all = self.entry.object.status.conditions.iter().chain(&packed);
        all.find(|condition| condition.r#type == "Ready")
            .and_then(|ready| conditions::read(&ready.last_transition_time))
    }

    fn unpack(&mut self) {
        let status = &mut self.entry.object.status;
        let Some(packed) = self.packed.take() else { return };
        if status.conditions.is_empty() {
            status.conditions = packed.conditions();
        }
        if let Some(info) = status.network_info.as_ref().filter(|_| self.guest.addresses.is_empty()) {
            self.guest = network_of(info);
        }
    }

    /// Most claims are ready, and stay that for a long time.
    fn pack(&mut self, texts: &mut Texts) {
        let status = &mut self.entry.object.status;
        if status.phase != Some(ClaimPhase::Ready) {
            return;
        }
        self.packed = texts.pack(&status.conditions);
        if self.packed.is_some() {
            status.conditions = Vec::new();
            if status.network_info.as_ref().is_some_and(|info| network_of(info) == self.guest) {
                self.guest = GuestNetwork::default();
            }
        }
    }

    /// The hypervisor of its machine, if it is recorded.
    pub(super) fn cluster(&self) -> Option<Name> {
        self.entry.object.status.vm_ref.as_ref().and_then(|vm_ref| Name::read(&vm_ref.hypervisor_cluster))
    }
}

/// What a status says about the network of a guest.
fn network_of(info: &NetworkInfo) -> GuestNetwork {
    GuestNetwork { addresses: info.addresses.clone(), mac: info.mac_address.clone() }
}

impl Core {
    /// Takes a claim as the watch reports it.
    pub(super) fn claim_seen(&mut self, claim: Claim) {
        let name = claim.name.clone();
        let now = self.now.monotonic;
        match self.claims.get_mut(&name) {
            Some(managed) if managed.entry.object.uid == claim.uid => {
                let id = |claim: &Claim| claim.status.vm_ref.as_ref().map(|vm_ref| vm_ref.vm_id.clone());
                let (before, after) = (id(&managed.entry.object), id(&claim));
                let intended = managed.intended.as_ref().map(|vm_ref| vm_ref.vm_id.clone());
                let was_deleting = managed.entry.object.deleting.is_some();
                if !managed.entry.observe(claim) {
                    return;
                }
                managed.packed = None;
                if managed.entry.object.deleting.is_some() && !was_deleting {
                    // What kept it from a machine is no reason to wait with its end.
                    managed.retry_now(now);
                }
                if before != after && after != intended {
                    // Somebody else has written the status: nothing is known of that machine.
                    managed.sight = Sight::Unknown;
                    managed.unresolved_until = managed.unresolved_until.max(now.after(REQUESTS_LAST));
                }
            }
            _ => {
                self.forget_claim(&name);
                self.add_claim(claim);
            }
        }
        self.enroll(&name);
        self.claim_changed(&name);
    }

    fn add_claim(&mut self, claim: Claim) {
        let (name, now) = (claim.name.clone(), self.now);
        let created = claim.status.created_time.as_ref().and_then(conditions::read);
        let (sight, unresolved_until) = match (&claim.status.vm_ref, created) {
            (None, _) => (Sight::Absent(now.monotonic), Moment::default()),
            // Another process may have asked to create it right before it ended.
            (Some(_), None) => (Sight::Unknown, self.started.after(REQUESTS_LAST)),
            // A clock that was wrong when that was written must not make it longer.
            (Some(_), Some(at)) => {
                let until = now.moment_of(change::now::later(at, REQUESTS_LAST));
                (Sight::Unknown, until.min(self.started.after(REQUESTS_LAST)))
            }
        };
        self.uids.insert(claim.uid.clone(), name.clone());
        if let Some(pool) = &claim.spec.runner_pool_ref {
            self.of_pool.entry(name.beside(None, &pool.name)).or_default().insert(name.clone());
        }
        let template = name.beside(None, &claim.spec.template_ref.name);
        self.of_template.entry(template.clone()).or_default().insert(name.clone());
        self.due.insert(Due::Template(template));
        let attempts = claim.status.attempts;
        let last = claim.status.last_failure.as_ref().filter(|_| attempts > 0);
        let failed = last.map(|last| Failed {
            of: Step::Inspect,
            class: last.class,
            message: last.message.clone(),
            retry_at: now.monotonic,
            count: attempts,
            since: now.monotonic,
            lasted: Duration::ZERO,
        });
        let guest = claim.status.network_info.as_ref().map(network_of);
        let workload = claim.spec.workload_config.as_ref().filter(|_| claim.spec.runner_pool_ref.is_some());
        let runner = workload.and_then(api::fleet::Workload::runners).map(|_| Box::new(Hosted::new(&claim.status)));
        let is_hosted = runner.is_some();
        let managed = Managed {
            runner,
            host_name: host_name(&name.name).into_boxed_str(),
            entry: Entry::new(claim),
            sight,
            operation: None,
            failed,
            unresolved_until,
            intended: None,
            enrolled: None,
            guest: guest.unwrap_or_default(),
            asked_guest: None,
            guest_trouble: None,
            halted: None,
            is_seeded: false,
            touched: Moment::default(),
            times: Times::default(),
            reported: None,
            packed: None,
        };
        self.claims.insert(name.clone(), Box::new(managed));
        if is_hosted {
            self.restore_guest(&name);
        }
    }

    /// Forgets a claim that is gone.
    pub(super) fn forget_claim(&mut self, name: &Name) {
        let Some(managed) = self.claims.remove(name) else { return };
        self.timers.remove(&Timer::Reconcile(Due::Claim(name.clone())));
        let claim = &managed.entry.object;
        self.uids.remove(&claim.uid);
        let template = name.beside(None, &claim.spec.template_ref.name);
        if let Some(of) = self.of_template.get_mut(&template) {
            of.remove(name);
        }
        self.due.insert(Due::Template(template));
        if let Some(pool) = &claim.spec.runner_pool_ref {
            let pool = name.beside(None, &pool.name);
            if let Some(of) = self.of_pool.get_mut(&pool) {
                of.remove(name);
            }
            self.due.insert(Due::Pool(pool));
        }
        if let Some((cluster, id)) = &managed.enrolled {
            self.dismiss(name, cluster, id);
        }
        let uid = claim.uid.clone();
        if managed.runner.is_some() {
            self.forget_guest(&uid);
        }
        let machine = managed.machine_id();
        let (reason, message) = ("Gone".to_owned(), String::new());
        let notice =
            Notice::Claim { name: name.clone(), uid, phase: None, reason, message, machine, ready_after: None };
        self.notify(notice);
    }

    /// Makes the id of a claim known to its hypervisor, so that nobody else gets it.
    pub(super) fn enroll(&mut self, name: &Name) {
        let Some(managed) = self.claims.get_mut(name) else { return };
        if managed.intended.is_some() && managed.intended == managed.entry.object.status.vm_ref {
            managed.intended = None;
        }
        let vm_ref = managed.intended.as_ref().or(managed.entry.object.status.vm_ref.as_ref());
        let wanted = vm_ref.and_then(|vm_ref| {
            let cluster = Name::read(&vm_ref.hypervisor_cluster)?;
            let known = self.clusters.get_key_value(&cluster).map(|(known, _)| known.clone());
            Some((known.unwrap_or(cluster), MachineId(vm_ref.vm_id.clone())))
        });
        let is_unseen = managed.sight == Sight::Unknown;
        let before = std::mem::replace(&mut managed.enrolled, wanted.clone());
        if before == wanted {
            // The object of the hypervisor may have come later.
            let known = wanted.as_ref().and_then(|(cluster, id)| self.clusters.get(cluster).map(|found| (found, id)));
            if known.is_none_or(|(found, id)| found.reserved.contains_key(id)) {
                return;
            }
        } else if let Some((cluster, id)) = &before {
            self.dismiss(name, cluster, id);
        }
        let Some((cluster, id)) = wanted else { return };
        if let Some(hypervisor) = self.clusters.get_mut(&cluster) {
            hypervisor.reserved.insert(id.clone(), name.clone());
            hypervisor.members.insert(name.clone());
            if is_unseen && !hypervisor.loads.has(name) {
                hypervisor.unheld.insert(name.clone());
            }
            hypervisor.surveyed.remove(&id);
            hypervisor.unrecorded.remove(&id);
            hypervisor.marks.remove(&id);
            self.due.insert(Due::Cluster(cluster));
        }
    }

    /// Takes a claim off a hypervisor.
    fn dismiss(&mut self, name: &Name, cluster: &Name, id: &MachineId) {
        let Some(hypervisor) = self.clusters.get_mut(cluster) else { return };
        if hypervisor.reserved.get(id) == Some(name) {
            hypervisor.reserved.remove(id);
        }
        hypervisor.members.remove(name);
        hypervisor.loads.withdraw(name);
        hypervisor.unheld.remove(name);
        hypervisor.halted.remove(name);
        let waiting = std::mem::take(&mut hypervisor.waiting);
        self.due.extend(waiting.into_iter().map(Due::Claim));
        self.due.insert(Due::Cluster(cluster.clone()));
    }

    /// Reconciles a claim.
    pub(super) fn reconcile_claim(&mut self, name: &Name) {
        if let Some(managed) = self.claims.get_mut(name) {
            managed.unpack();
            managed.follow_times(self.now);
        }
        self.decide_claim(name);
        if let Some(managed) = self.claims.get_mut(name) {
            managed.pack(&mut self.texts);
        }
    }

    fn decide_claim(&mut self, name: &Name) {
        let ground = self.ground(name);
        let Some(managed) = self.claims.get(name) else { return };
        let claim = &managed.entry.object;
        let template = self.templates.get(&name.beside(None, &claim.spec.template_ref.name));
        let readiness = template.map(|template| {
            let readiness = &template.entry.object.spec.readiness;
            let timeout = Span::duration(&readiness.timeout).unwrap_or(Duration::MAX);
            (readiness.signal, timeout) as (ReadinessSignal, Duration)
        });
        let pool = claim.spec.runner_pool_ref.as_ref().and_then(|pool| self.pools.get(&name.beside(None, &pool.name)));
        let lifecycle = pool.map(|pool| &pool.entry.object.spec.lifecycle);
        let job_timeout = lifecycle.filter(|_| managed.runner.is_some());
        let job_timeout = job_timeout.and_then(|lifecycle| lifecycle.job_timeout.as_ref()).and_then(Span::duration);
        let provisioning = lifecycle.map(|lifecycle| {
            lifecycle.provisioning_timeout.as_ref().and_then(Span::duration).unwrap_or(PROVISIONING_TIMEOUT)
        });
        let hypervisor = managed.cluster().and_then(|cluster| self.clusters.get(&cluster));
        let cleanup = hypervisor.and_then(|found| found.entry.object.spec.cleanup_deadline.duration());
        let times = &managed.times;
        let mut decision = machine::decide(&Observed {
            claim,
            sight: &managed.sight,
            is_working: managed.operation.is_some(),
            failed: managed.failed.as_ref(),
            provisioning,
            cleanup: cleanup.unwrap_or(machine::CLEANUP_DEADLINE),
            since: Since {
                created: managed.created(self.now),
                started: claim.status.started_time.as_ref().and(times.started.at(self.now)),
                deleting: claim.deleting.and(times.deleting.at(self.now)),
            },
            unresolved_until: managed.unresolved_until,
            ground: &ground,
            readiness,
            guest: &managed.guest,
            asked_guest: managed.asked_guest,
            guest_trouble: managed.guest_trouble.as_deref(),
            halted: managed.halted.as_deref(),
            seed: template.and_then(|template| cloud_init::delivery(&template.entry.object.spec)),
            keeps_image: template.is_some_and(|template| cloud_init::keeps_image(&template.entry.object.spec)),
            is_seeded: managed.is_seeded,
            runner: managed.runner.as_deref().map(|hosted| hosted.view(job_timeout)),
            now: self.now,
        });
        if let Some(hosted) = managed.runner.as_deref() {
            hosted.complete(self.ci.phases.get(name), &mut decision.status);
        }
        if let Some(wake) = decision.wake {
            self.wake(Due::Claim(name.clone()), wake);
        }
        self.report_claim(name, &decision);
        self.carry_out(name, decision);
    }

    fn carry_out(&mut self, name: &Name, decision: Decision) {
        let now = self.now.monotonic;
        if self.is_being_created(name) {
            return;
        }
        let Some(managed) = self.claims.get_mut(name) else { return };
        let (entry, kinds) = (&mut managed.entry, &self.discovery.kinds);
        let is_write = matches!(decision.step, Step::AddFinalizer | Step::RemoveFinalizer | Step::Delete(_));
        // Without its finalizer a claim that is being deleted is gone at any moment.
        let is_leaving = entry.object.deleting.is_some() && !entry.object.has_finalizer(CLEANUP_FINALIZER);
        let is_changed = decision.status != entry.object.status && !is_leaving;
        let is_writable = entry.is_writable(now);
        if (is_write || is_changed) && !(is_writable && self.slots.free() > 0) {
            if is_writable {
                self.slots.wait(Due::Claim(name.clone()));
            } else if let Some(until) = entry.blocked_until.filter(|until| *until > now) {
                self.wake(Due::Claim(name.clone()), until);
            }
            // What does not depend on the write goes on.
            if !is_write {
                self.operate(name, decision.step);
            }
            return;
        }
        let uid = entry.object.uid.clone();
        let (write, notice) = match decision.step {
            Step::AddFinalizer => (entry.finalizer(KIND, kinds, CLEANUP_FINALIZER, true), None),
            Step::RemoveFinalizer => {
                let is_forced = decision.status.conditions.iter().any(|condition| condition.reason == "Forced");
                let machine = entry.object.status.vm_ref.as_ref().map(|vm_ref| MachineId(vm_ref.vm_id.clone()));
                let notice = is_forced.then(|| Notice::Forced { name: name.clone(), uid, machine });
                (entry.finalizer(KIND, kinds, CLEANUP_FINALIZER, false), notice)
            }
            // The status says why before the claim is deleted; its next reconcile deletes it.
            Step::Delete(end) if !is_changed => {
                (entry.delete(KIND, kinds), Some(Notice::Ended { name: name.clone(), uid, end }))
            }
            _ if is_changed => {
                managed.times.follow_status(&decision.status, self.now);
                (entry.status(KIND, kinds, decision.status), None)
            }
            _ => (None, None),
        };
        if let Some(write) = write {
            self.slots.acquire(name);
            self.commands.push(Command::Write(Box::new(write)));
        }
        self.commands.extend(notice.map(Command::Notify));
        if !is_write {
            self.operate(name, decision.step);
        }
    }

    /// Asks the hypervisor for a step.
    fn operate(&mut self, name: &Name, step: Step) {
        if matches!(step, Step::Wait | Step::AddFinalizer | Step::RemoveFinalizer | Step::Delete(_)) {
            return;
        }
        if self.claims.get(name).is_none_or(|managed| managed.operation.is_some())
            || !self.is_guest_prepared(name, step)
        {
            return;
        }
        let Some(managed) = self.claims.get(name) else { return };
        let Some(cluster) = managed.cluster() else { return };
        let (uid, operator) = (managed.entry.object.uid.clone(), &self.config.operator);
        let Some(target) = machine::target(&managed.entry.object, operator) else { return };
        let Some(hypervisor) = self.clusters.get_mut(&cluster) else {
            return self.withhold(name, format!("there is no HypervisorCluster {cluster}; create it again"));
        };
        if hypervisor.is_moved() {
            let message = format!("the endpoint of HypervisorCluster {cluster} was changed; see its condition");
            return self.withhold(name, message);
        }
        let is_started = managed.entry.object.status.started_time.is_some();
        if step == Step::Inspect && is_started && hypervisor.listed.is_none() {
            // The first list tells about all machines at once.
            return;
        }
        let node = target.node.clone().unwrap_or_default();
        if needs_slot(step) && hypervisor.slots.free_on(&node) == 0 {
            return hypervisor.slots.wait(Due::Claim(name.clone()), &node);
        }
        let operation = match step {
            Step::Inspect => Operation::Inspect(target.id),
            Step::Start => Operation::Start(target),
            Step::Destroy => Operation::Destroy(target),
            Step::AskGuest => Operation::Addresses(target),
            Step::RemoveSeed => Operation::RemoveSeed(target),
            Step::Deliver => {
                let claim = &managed.entry.object;
                let template = self.templates.get(&name.beside(None, &claim.spec.template_ref.name));
                let guest = self.guest_config(name);
                let made = |spec| blueprint::delivery(claim, operator, spec, guest.as_ref());
                let delivery = template.and_then(|of| made(&of.entry.object.spec));
                let Some(delivery) = delivery else { return };
                Operation::Deliver(Box::new(delivery))
            }
            Step::Create | Step::Configure => {
                let Ok(blueprint) = self.blueprint(name, &cluster, step) else { return };
                if step == Step::Create {
                    let of = if blueprint.template.is_shared { String::new() } else { format!("{}:", blueprint.node) };
                    let (storage, node) = (format!("{of}{}", blueprint.template.storage), blueprint.node.clone());
                    if !self.may_clone(&cluster, name, &storage, &node) {
                        return;
                    }
                    Operation::Create(Box::new(blueprint))
                } else {
                    Operation::Configure(Box::new(blueprint))
                }
            }
            Step::Wait | Step::AddFinalizer | Step::RemoveFinalizer | Step::Delete(_) => return,
        };
        let number = self.ask(&cluster, operation, What::Claim { name: name.clone(), uid, step });
        let now = self.now.monotonic;
        if let Some(managed) = self.claims.get_mut(name) {
            managed.operation = Some(number);
            if matches!(step, Step::AskGuest | Step::Deliver) {
                managed.asked_guest = Some(now);
            }
        }
    }

    /// Nothing can be asked of the hypervisor before a person has done something.
    pub(super) fn withhold(&mut self, name: &Name, message: String) {
        let now = self.now.monotonic;
        let Some(managed) = self.claims.get_mut(name) else { return };
        let (class, retry_at) = (api::fleet::FailureClass::Configuration, now.after(Duration::from_secs(60)));
        let is_known = managed.failed.as_ref().is_some_and(|failed| failed.message == message);
        let (of, lasted) = (Step::Inspect, Duration::ZERO);
        managed.failed = Some(Failed { of, class, message, retry_at, count: 1, since: now, lasted });
        if !is_known {
            self.due.insert(Due::Claim(name.clone()));
        }
        self.wake(Due::Claim(name.clone()), retry_at);
    }

    /// What the machine of a claim is to be.
    fn blueprint(&self, name: &Name, cluster: &Name, step: Step) -> Result<Blueprint, String> {
        let missing = || "it cannot be created now".to_owned();
        let managed = self.claims.get(name).ok_or_else(missing)?;
        let claim = &managed.entry.object;
        let template = self.templates.get(&name.beside(None, &claim.spec.template_ref.name)).ok_or_else(missing)?;
        let hypervisor = self.clusters.get(cluster).ok_or_else(missing)?;
        let listed = hypervisor.listed.as_ref().ok_or_else(missing)?;
        let spec = &template.entry.object.spec;
        let reference = crate::template::reference(spec).ok_or_else(missing)?;
        let Some(Ok(found)) = hypervisor.found.get(&reference) else { return Err(missing()) };
        let node = claim.status.vm_ref.as_ref().and_then(|vm_ref| vm_ref.node.as_deref()).unwrap_or_default();
        let first = found.first().ok_or_else(missing)?;
        let need = blueprint::need(spec, &hypervisor.entry.object.spec, first)?;
        let source = placement::template_for(&need, node, found, listed).unwrap_or(first);
        // A clone takes minutes: the token of the guest comes right before the start.
        let guest = if step == Step::Configure { self.guest_config(name) } else { None };
        blueprint::blueprint(claim, &self.config.operator, spec, &hypervisor.entry.object.spec, source, guest.as_ref())
    }

    fn report_claim(&mut self, name: &Name, decision: &Decision) {
        let Some(managed) = self.claims.get_mut(name) else { return };
        let Some(condition) = decision.status.conditions.iter().find(|condition| condition.r#type == "Ready") else {
            return;
        };
        let Some(phase) = decision.status.phase else { return };
        let said = (phase, crate::backoff::hash(&condition.reason, 0));
        if managed.reported.replace(said) == Some(said) {
            return;
        }
        let claim = &managed.entry.object;
        let ready = decision.status.ready_time.as_ref().and_then(conditions::read);
        let is_new = phase == ClaimPhase::Ready && claim.status.ready_time.is_none();
        let ready_after =
            ready.filter(|_| is_new).and_then(|ready| Duration::try_from(ready.duration_since(claim.created)).ok());
        let notice = Notice::Claim {
            name: name.clone(),
            uid: claim.uid.clone(),
            phase: Some(phase),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            machine: managed.machine_id(),
            ready_after,
        };
        self.notify(notice);
    }

    /// Whether a ground is needed to decide about a claim; asking for one reserves an id.
    pub(super) fn needs_ground(managed: &Managed) -> bool {
        let claim = &managed.entry.object;
        let is_wanted = claim.deleting.is_none()
            && claim.status.phase != Some(ClaimPhase::Failed)
            && claim.has_finalizer(CLEANUP_FINALIZER)
            && !claim.is_switched(api::fleet::DRAIN);
        is_wanted
            && match (&claim.status.vm_ref, &managed.sight) {
                (None, _) | (Some(_), Sight::Ours { is_configured: false, .. }) => true,
                (Some(_), Sight::Foreign(at)) => claim.status.created_time.is_none() && *at >= managed.unresolved_until,
                (Some(_), Sight::Absent(_)) => claim.status.created_time.is_none(),
                (Some(_), _) => false,
            }
    }

    /// Nothing can be said.
    pub(super) fn no_ground() -> Ground {
        Ground::Waiting { reason: "Waiting", message: String::new() }
    }
}

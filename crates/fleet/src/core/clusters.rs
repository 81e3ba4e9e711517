//! Hypervisors: checked, listed every 30 seconds with one request, and watched for other credentials.

use super::asking::What;
use super::entry::Entry;
use super::loads::{Loads, Shown};
use super::node_slots::NodeSlots;
use super::turns::Turns;
use super::{Core, Due, Timer};
use crate::backoff;
use crate::cluster::{self, Keep, NO_RECORD, Observed};
use crate::hypervisor::{Checked, Listed, MachineId, Operation, Owner, Power, TemplateRef};
use crate::machine::Sight;
use crate::notice::Notice;
use crate::object::Name;
use crate::orphans::Marks;
use crate::template::LookedUp;
use api::fleet::{ClaimPhase, FailureClass, HypervisorClusterSpec, HypervisorClusterStatus, IN_USE_FINALIZER};
use change::{Key, Kind, Moment};
use protocol::{Command, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A stopped machine is noticed within this.
const LIST_EVERY: Duration = Duration::from_secs(30);
/// Privileges and versions change seldom.
const CHECK_EVERY: Duration = Duration::from_secs(300);
/// While something is wrong, somebody waits for its end.
const CHECK_TROUBLE_EVERY: Duration = Duration::from_secs(20);
/// What fails may be explained by a check, but hundreds of claims fail for the same reason.
const CHECK_AFTER_FAILURES: Duration = Duration::from_secs(15);
/// What a list says about storages may be so old.
const STATISTICS_LAST: Duration = Duration::from_secs(20);
const KIND: &str = "HypervisorCluster";

/// A hypervisor and what is known of it.
#[derive(Debug)]
pub(super) struct Hypervisor {
    pub(super) entry: Entry<HypervisorClusterSpec, HypervisorClusterStatus>,
    pub(super) is_ready: bool,
    checked: Option<Result<Checked, (FailureClass, String)>>,
    check_failures: u32,
    is_checking: bool,
    last_check: Option<Moment>,
    /// Whether something has changed since the check in flight was sent.
    is_check_outdated: bool,
    is_listing: bool,
    list_failures: u32,
    list_failure: Option<String>,
    pub(super) listed: Option<Box<Listed>>,
    pub(super) loads: Loads,
    /// Templates that were looked up.
    pub(super) found: BTreeMap<TemplateRef, LookedUp>,
    /// Look-ups in flight.
    pub(super) looking_up: BTreeSet<TemplateRef>,
    /// The ids of claims, recorded or about to be.
    pub(super) reserved: BTreeMap<MachineId, Name>,
    /// The claims with such an id.
    pub(super) members: BTreeSet<Name>,
    /// Where to look for the next id.
    pub(super) next_id: Option<u32>,
    /// Clones in flight by storage and by node.
    pub(super) clones: BTreeMap<String, u32>,
    pub(super) clones_on: BTreeMap<String, u32>,
    /// Claims that wait for a clone to end.
    pub(super) turns: Turns,
    /// Claims with a recorded place that was not promised to them since this process began.
    pub(super) unheld: BTreeSet<Name>,
    /// Machines that are worked on.
    pub(super) slots: NodeSlots,
    /// Claims that wait for room, or for the hypervisor.
    pub(super) waiting: BTreeSet<Name>,
    /// Machines that no claim refers to: their names and owners, once they were inspected.
    pub(super) surveyed: BTreeMap<MachineId, (Box<str>, Option<Owner>)>,
    /// Those of them that have everything of a machine of the fleet but a record that says whose they are.
    pub(super) unrecorded: BTreeSet<MachineId>,
    pub(super) to_survey: BTreeSet<MachineId>,
    /// Since when machines wait to be inspected, or could not be.
    pub(super) unseen_since: BTreeMap<MachineId, Moment>,
    pub(super) surveying: BTreeSet<MachineId>,
    pub(super) marks: Marks,
    /// The claim whose machine was looked at last, and those whose machines were halted then.
    pub(super) looked: Option<Name>,
    pub(super) halted: BTreeSet<Name>,
    /// Images that no machine needed when they were listed last.
    pub(super) seed_marks: BTreeSet<String>,
    /// Whether all machines that no claim refers to were looked at.
    pub(super) is_swept: bool,
    pub(super) destroying: BTreeSet<MachineId>,
    /// Orphans that could not be destroyed since the last list.
    pub(super) undestroyed: BTreeSet<MachineId>,
    /// The versions of its Secrets.
    secrets: BTreeMap<String, String>,
    reported: Option<(bool, &'static str)>,
    /// How many machines of claims ran, and did not, when that was reported last.
    powers: Option<[(Power, u32); 3]>,
}

impl Hypervisor {
    /// Of which so many machines are worked on at a time.
    pub(super) fn new(entry: Entry<HypervisorClusterSpec, HypervisorClusterStatus>, operations: usize) -> Hypervisor {
        Hypervisor {
            entry,
            is_ready: false,
            checked: None,
            check_failures: 0,
            is_checking: false,
            last_check: None,
            is_check_outdated: false,
            is_listing: false,
            list_failures: 0,
            list_failure: None,
            listed: None,
            loads: Loads::default(),
            found: BTreeMap::new(),
            looking_up: BTreeSet::new(),
            reserved: BTreeMap::new(),
            members: BTreeSet::new(),
            next_id: None,
            clones: BTreeMap::new(),
            clones_on: BTreeMap::new(),
            turns: Turns::default(),
            unheld: BTreeSet::new(),
            slots: NodeSlots::new(operations),
            waiting: BTreeSet::new(),
            surveyed: BTreeMap::new(),
            unrecorded: BTreeSet::new(),
            to_survey: BTreeSet::new(),
            unseen_since: BTreeMap::new(),
            surveying: BTreeSet::new(),
            marks: Marks::default(),
            looked: None,
            halted: BTreeSet::new(),
            seed_marks: BTreeSet::new(),
            is_swept: false,
            destroying: BTreeSet::new(),
            undestroyed: BTreeSet::new(),
            secrets: BTreeMap::new(),
            reported: None,
            powers: None,
        }
    }

    /// Whether its address was changed although it has machines, and nobody has said that they are there.
    pub(super) fn is_moved(&self) -> bool {
        cluster::is_moved(&self.entry.object, &self.members)
    }

    /// Forgets what was learnt at another address.
    pub(super) fn forget(&mut self) {
        (self.checked, self.listed, self.is_swept) = (None, None, false);
        self.loads = Loads::default();
        self.unheld.clone_from(&self.members);
        self.found.clear();
        self.surveyed.clear();
        self.unrecorded.clear();
        self.to_survey.clear();
        self.unseen_since.clear();
        self.marks = Marks::default();
    }

    /// The Secrets that it names.
    pub(super) fn secret_targets(&self) -> BTreeSet<WatchTarget> {
        let spec = &self.entry.object.spec;
        let refs = spec.credentials.iter().flat_map(api::fleet::Credentials::refs).chain(&spec.tls.ca_certificate);
        let namespace = &self.entry.object.name.namespace;
        let key = |name: &String| Key {
            kind: Kind::new("v1", "Secret"),
            namespace: namespace.to_string(),
            name: name.clone(),
        };
        refs.map(|secret| WatchTarget::only(&key(&secret.name))).collect()
    }

    /// Takes the version of a Secret; whether the hypervisor has to be checked because of it.
    pub(super) fn secret_seen(&mut self, name: &str, version: &str) -> bool {
        match self.secrets.insert(name.to_owned(), version.to_owned()) {
            Some(before) => before != version,
            // It was perhaps missing at the last check.
            None => matches!(self.checked, Some(Err(_))),
        }
    }
}

impl Core {
    /// Takes a `HypervisorCluster` that is new or has another spec.
    pub(super) fn cluster_changed(&mut self, name: &Name) {
        if let Some(hypervisor) = self.clusters.get_mut(name) {
            (hypervisor.check_failures, hypervisor.list_failures) = (0, 0);
        }
        self.check(name);
        self.list(name);
        self.timers.set(Timer::Seeds(name.clone()), self.now.monotonic.after(super::seeds::FIRST));
        self.due.insert(Due::Cluster(name.clone()));
        // What has failed because of the former settings is tried at once with the new ones.
        self.retry_members(name);
        let of_it: Vec<Name> = self
            .templates
            .iter()
            .filter(|(_, managed)| managed.cluster() == *name)
            .map(|(name, _)| name.clone())
            .collect();
        for template in of_it {
            self.look_up(&template);
            self.due.insert(Due::Template(template));
        }
    }

    /// What has failed on a hypervisor is tried again at once.
    fn retry_members(&mut self, name: &Name) {
        let now = self.now.monotonic;
        for member in self.clusters.get(name).into_iter().flat_map(|found| &found.members) {
            if let Some(managed) = self.claims.get_mut(member) {
                managed.retry_now(now);
            }
            self.due.insert(Due::Claim(member.clone()));
        }
    }

    /// Checks a hypervisor because something has failed that a check may explain.
    pub(super) fn check_soon(&mut self, name: &Name) {
        let now = self.now.monotonic;
        let Some(hypervisor) = self.clusters.get(name).filter(|found| !found.is_checking) else { return };
        match hypervisor.last_check.map(|last| last.after(CHECK_AFTER_FAILURES)) {
            Some(at) if at > now => self.timers.set(Timer::Check(name.clone()), at),
            _ => self.check(name),
        }
    }

    /// Checks a hypervisor now.
    pub(super) fn check(&mut self, name: &Name) {
        let now = self.now.monotonic;
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        if hypervisor.is_checking {
            // The check in flight may be one with the credentials of before.
            hypervisor.is_check_outdated = true;
            return;
        }
        (hypervisor.is_checking, hypervisor.is_check_outdated, hypervisor.last_check) = (true, false, Some(now));
        self.ask(name, Operation::Check, What::Check);
    }

    /// Lists the machines of a hypervisor now.
    pub(super) fn list(&mut self, name: &Name) {
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        if hypervisor.is_listing {
            return;
        }
        hypervisor.is_listing = true;
        self.ask(name, Operation::List, What::List);
    }

    /// Takes the answer to a check.
    pub(super) fn checked(&mut self, name: &Name, result: Result<Checked, (FailureClass, String)>) {
        let now = self.now.monotonic;
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        hypervisor.is_checking = false;
        let wait = match &result {
            Ok(checked) => {
                hypervisor.check_failures = 0;
                if cluster::problems(checked).is_empty() { CHECK_EVERY } else { CHECK_TROUBLE_EVERY }
            }
            Err((class, _)) => {
                let pause = backoff::pause(*class, hypervisor.check_failures, &hypervisor.entry.object.uid);
                hypervisor.check_failures = hypervisor.check_failures.saturating_add(1);
                pause.min(CHECK_EVERY)
            }
        };
        hypervisor.checked = Some(result);
        let is_outdated = hypervisor.is_check_outdated;
        self.timers.set(Timer::Check(name.clone()), now.after(wait));
        self.due.insert(Due::Cluster(name.clone()));
        if is_outdated {
            self.check(name);
        }
    }

    /// Takes a list, or why there is none.
    pub(super) fn listed(&mut self, name: &Name, sent: Moment, result: Result<Box<Listed>, String>) {
        let now = self.now.monotonic;
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        hypervisor.is_listing = false;
        match result {
            Err(why) => {
                hypervisor.list_failures = hypervisor.list_failures.saturating_add(1);
                hypervisor.list_failure = Some(why);
                let pause = Duration::from_secs(5).saturating_mul(hypervisor.list_failures).min(LIST_EVERY);
                let is_trouble = hypervisor.list_failures > 1;
                self.timers.set(Timer::List(name.clone()), now.after(pause));
                if is_trouble {
                    self.check_soon(name);
                }
            }
            Ok(listed) => {
                let had_failed = hypervisor.list_failures > 1;
                (hypervisor.list_failures, hypervisor.list_failure) = (0, None);
                hypervisor.listed = Some(listed);
                self.timers.set(Timer::List(name.clone()), now.after(LIST_EVERY));
                self.count_members(name, sent);
                self.count_powers(name);
                self.texts.forget_unused();
                self.compare_members(name, sent);
                self.survey(name);
                self.look_around(name);
                if had_failed {
                    self.check(name);
                }
                let waiting = self.clusters.get_mut(name).map(|found| std::mem::take(&mut found.waiting));
                self.due.extend(waiting.into_iter().flatten().map(Due::Claim));
            }
        }
        self.due.insert(Due::Cluster(name.clone()));
    }

    /// Counts what the machines of claims take: also of those that do not run yet.
    fn count_members(&mut self, name: &Name, sent: Moment) {
        let Some(Hypervisor { listed: Some(listed), loads, members, .. }) = self.clusters.get_mut(name) else { return };
        let claims = &self.claims;
        let machines = members.iter().filter_map(|member| {
            let managed = claims.get(member)?;
            let status = &managed.entry.object.status;
            // One that was there and is gone, or that will never be there, needs no room, whatever keeps its claim.
            let was_there = status.created_time.is_some() || status.phase == Some(ClaimPhase::Failed);
            let is_over = was_there && matches!(managed.sight, Sight::Absent(_));
            let seen = managed.machine_id().and_then(|id| listed.machines.get(&id));
            let seen = seen.filter(|seen| *seen.name == *managed.host_name);
            let is_written = matches!(managed.sight, Sight::Ours { is_configured: true, .. })
                && managed.operation.is_none()
                && managed.touched.after(STATISTICS_LAST) <= sent;
            (!is_over).then(|| (member, seen.map(|seen| Shown { seen, is_written })))
        });
        loads.list(listed, machines);
    }

    /// Reports how many machines of claims run.
    fn count_powers(&mut self, name: &Name) {
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        let Hypervisor { listed: Some(listed), members, .. } = hypervisor else { return };
        let mut powers = [Power::Running, Power::Stopped, Power::Unknown].map(|power| (power, 0));
        let machines = members.iter().filter_map(|member| {
            let managed = self.claims.get(member)?;
            let seen = listed.machines.get(&managed.machine_id()?)?;
            (*seen.name == *managed.host_name).then_some(seen.power)
        });
        for power in machines {
            for (_, count) in powers.iter_mut().filter(|(of, _)| *of == power) {
                *count += 1;
            }
        }
        if hypervisor.powers.replace(powers) != Some(powers) {
            self.notify(Notice::Machines { cluster: name.clone(), powers });
        }
    }

    /// Compares the claims of a hypervisor with its list: which machines have stopped, moved, or are not there.
    fn compare_members(&mut self, name: &Name, sent: Moment) {
        let now = self.now.monotonic;
        let Some(hypervisor) = self.clusters.get_mut(name).filter(|found| !found.is_moved()) else { return };
        let Some(listed) = &hypervisor.listed else { return };
        for member in &hypervisor.members {
            let Some(managed) = self.claims.get_mut(member) else { continue };
            let Some(id) = managed.machine_id() else { continue };
            let seen = listed.machines.get(&id);
            if managed.operation.is_some() || managed.touched >= sent {
                continue;
            }
            if managed.sight == Sight::Unknown {
                // After a restart: what was started was configured, and whose it is is read again before it is destroyed.
                let is_started = managed.entry.object.status.started_time.is_some();
                if let Some(seen) = seen.filter(|seen| *seen.name == *managed.host_name && is_started)
                    && seen.power == Power::Running
                {
                    managed.sight = Sight::Ours { power: seen.power, is_configured: true, node: seen.node.to_string() };
                    managed.failed = None;
                }
                self.due.insert(Due::Claim(member.clone()));
                continue;
            }
            let Sight::Ours { power, node, .. } = &mut managed.sight else { continue };
            let is_changed = match seen {
                Some(seen) if *seen.name != *managed.host_name => {
                    managed.sight = Sight::Unknown;
                    true
                }
                // The list may be older than the start of the machine: the machine itself has to say that it has stopped.
                Some(seen) if seen.power == Power::Stopped && *power != Power::Stopped => {
                    managed.sight = Sight::Unknown;
                    true
                }
                Some(seen) => {
                    // A node that does not answer says nothing about its machines.
                    let is_changed = seen.power != Power::Unknown && (seen.power != *power || *seen.node != **node);
                    if is_changed {
                        (*power, *node) = (seen.power, seen.node.to_string());
                    }
                    is_changed
                }
                None if listed.nodes.get(node.as_str()).is_none_or(|node| node.is_online) => {
                    managed.sight = Sight::Unknown;
                    true
                }
                None => false,
            };
            if is_changed {
                // What has failed before, such as removing an image, does not delay a look at what has changed.
                managed.retry_now(now);
                self.due.insert(Due::Claim(member.clone()));
            }
        }
    }

    /// Reconciles a `HypervisorCluster`.
    pub(super) fn reconcile_cluster(&mut self, name: &Name) {
        let Some(hypervisor) = self.clusters.get(name) else { return };
        let orphans = match hypervisor.is_swept {
            true => {
                let marked = hypervisor.marks.all().map(|(id, owner)| format!("{} ({})", id.0, owner.claim));
                let unrecorded = hypervisor.unrecorded.iter().map(|id| format!("{}{NO_RECORD}", id.0));
                marked.chain(unrecorded).collect()
            }
            // What an earlier process has found stays until all machines were looked at again.
            false => hypervisor.entry.object.status.orphans.clone(),
        };
        let decision = cluster::decide(&Observed {
            cluster: &hypervisor.entry.object,
            checked: hypervisor.checked.as_ref(),
            list_failures: (hypervisor.list_failures, hypervisor.list_failure.as_deref()),
            listed: hypervisor.listed.as_deref(),
            promised: hypervisor.loads.promised(),
            users: &hypervisor.members,
            orphans,
            now: self.now,
        });
        let now = self.now.monotonic;
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        // Where machines are has to be recorded before there are any.
        let is_recorded =
            hypervisor.entry.object.status.endpoint.as_ref() == Some(&hypervisor.entry.object.spec.endpoint);
        let is_ready = decision.is_ready && is_recorded;
        let was_ready = std::mem::replace(&mut hypervisor.is_ready, is_ready);
        let uid = hypervisor.entry.object.uid.clone();
        let said = (decision.is_ready, decision.reason);
        let is_news = hypervisor.reported.replace(said) != Some(said);
        if hypervisor.entry.is_writable(now) {
            let (entry, kinds) = (&mut hypervisor.entry, &self.discovery.kinds);
            let write = match decision.keep {
                Keep::Add => entry.finalizer(KIND, kinds, IN_USE_FINALIZER, true),
                Keep::Remove => entry.finalizer(KIND, kinds, IN_USE_FINALIZER, false),
                Keep::AsIs if decision.status != entry.object.status => entry.status(KIND, kinds, decision.status),
                Keep::AsIs => None,
            };
            self.commands.extend(write.map(|write| Command::Write(Box::new(write))));
        }
        if is_news {
            let (is_ready, reason, message) = (decision.is_ready, decision.reason, decision.message);
            self.notify(Notice::Cluster { name: name.clone(), uid, is_ready, reason, message });
        }
        if is_ready != was_ready {
            self.cluster_turned(name, is_ready);
        }
    }

    /// A hypervisor can be used now, or not any more.
    fn cluster_turned(&mut self, name: &Name, is_ready: bool) {
        if is_ready {
            self.retry_members(name);
        }
        let of_it: Vec<Name> = self
            .templates
            .iter()
            .filter(|(_, managed)| managed.cluster() == *name)
            .map(|(name, _)| name.clone())
            .collect();
        for template in of_it {
            if is_ready {
                self.look_up(&template);
            }
            let claims = self.of_template.get(&template).into_iter().flatten().cloned();
            self.due.extend(claims.map(Due::Claim));
            self.due.insert(Due::Template(template));
        }
    }
}

//! Jobs and runners: what is known goes into their state machine, and what it decides is asked for and carried out.

use super::claims::KIND as CLAIM;
use super::forges::{Call, Forge};
use super::versions::Tended;
use super::webhooks::Receiver;
use super::{Core, Due};
use crate::conditions;
use crate::conditions::{Wanted, merge, wanted};
use crate::inbox::Signed;
use crate::jobs::assign::Scale;
use crate::jobs::chronicle::Chronicle;
use crate::jobs::demand::{Readiness, Wait};
use crate::jobs::exchange::{Decision, Event, Objects, Order};
use crate::jobs::published::Operator;
use crate::jobs::redelivery::Redelivery;
use crate::jobs::runners::{self, Machine, Phase};
use crate::jobs::settings::{self, Settings};
use crate::jobs::{Dispatch, JobKey, demand};
use crate::machine::Sight;
use crate::object::Name;
use crate::outside::{Ask, Request};
use crate::pool::{self, State};
use crate::versions::Outcome;
use api::fleet::{ClaimPhase, ClaimPower, DRAIN, JobSource, RunnerPoolStatus, Span, Workload};
use change::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A guest asks every two seconds for the credentials of its runner. One that does not is offered them again after this.
const OFFERED: Duration = Duration::from_secs(30);
/// No more organisations of an enterprise are remembered.
const MOST_ORGANIZATIONS: usize = 10_000;

/// Everything about jobs and runners. All of it is found out again after a restart.
#[derive(Debug, Default)]
pub(super) struct Ci {
    /// The jobs and runners of each GitHub, by the address of its API.
    pub(super) servers: BTreeMap<String, Dispatch>,
    pub(super) forges: BTreeMap<Name, Forge>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) phases: BTreeMap<Name, Phase>,
    pub(super) scale: BTreeMap<Name, Scale>,
    /// The organisations of the enterprises of each server, as events have named them.
    organizations: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    pub(super) failed_look_ups: usize,
    /// Offers that are to be acquired, by the address of an API and the scale set.
    pub(super) granted: BTreeMap<(String, u64), BTreeSet<u64>>,
    /// The runner versions of pools.
    pub(super) versions: BTreeMap<Name, Tended>,
    /// The webhooks whose failed deliveries are made again.
    pub(super) webhooks: BTreeMap<Receiver, Redelivery>,
    pub(super) is_receiving: bool,
    /// Whether guests are answered.
    pub(super) is_open: bool,
    /// What was reported of jobs, and the published queue.
    pub(super) chronicle: Chronicle,
    /// In which namespace the queue is published, and by whom; nothing if it is not.
    pub(super) publisher: Option<(String, Operator)>,
}

impl Ci {
    /// The organisations of the enterprise that these settings are of, as far as they are known.
    fn organizations_of(&self, settings: &Settings) -> Option<&BTreeSet<String>> {
        self.organizations.get(&settings.address.api)?.get(&settings.scope.owner)
    }

    /// Organisations belong to an enterprise.
    fn belong(&mut self, settings: &Settings, owners: impl IntoIterator<Item = String>) {
        let server = self.organizations.entry(settings.address.api.clone()).or_default();
        let known = server.entry(settings.scope.owner.clone()).or_default();
        let room = MOST_ORGANIZATIONS.saturating_sub(known.len());
        let news: Vec<String> = owners.into_iter().filter(|owner| !known.contains(owner)).take(room).collect();
        known.extend(news);
    }
}

impl Core {
    /// Takes news about jobs or runners of a server.
    pub(super) fn tell(&mut self, api: &str, event: Event) {
        let (operator, servers) = (&self.config.operator, &mut self.ci.servers);
        servers.entry(api.to_owned()).or_insert_with(|| Dispatch::new(operator)).take(event, self.now);
        self.due.insert(Due::Jobs);
    }

    /// Takes what a webhook says about a job: for the pools whose secret has signed it, once their logins have worked.
    pub(super) fn observed(&mut self, signed: &Signed) {
        let observation = &signed.observation;
        let repository = &observation.facts.repository;
        let proved = self.ci.forges.iter().filter(|(_, forge)| forge.is_proved());
        let all: Vec<(&Name, &Settings)> = proved
            .filter_map(|(name, forge)| Some((name, forge.settings.as_ref().ok()?)))
            .filter(|(_, settings)| settings.covers(repository))
            .collect();
        let has_signed = |name: &Name, settings: &Settings| {
            settings.sources.contains(&JobSource::Webhook) && signed.pools.contains(name)
        };
        let signers: Vec<Settings> =
            all.iter().filter(|(name, found)| has_signed(name, found)).map(|(_, found)| (*found).clone()).collect();
        let apis: BTreeSet<&String> = signers.iter().map(|settings| &settings.address.api).collect();
        let near: BTreeSet<String> = all
            .iter()
            .filter(|(_, settings)| !settings.scope.is_enterprise())
            .map(|(_, settings)| settings.address.api.clone())
            .collect();
        for api in apis {
            // Events of GitLab have no tags: what others run is none of ours unless it is known.
            let facts = &observation.facts;
            let is_known = || self.ci.servers.get(api).is_some_and(|found| found.table().get(&facts.key).is_some());
            let is_ours = || {
                let prefix = runners::prefix(&self.config.operator);
                facts.runner.as_ref().is_some_and(|runner| runner.starts_with(&prefix))
            };
            let is_gitlab = signers.iter().any(|one| one.address.api == *api && !one.platform.is_github());
            if is_gitlab && facts.state > crate::jobs::State::Queued && !is_known() && !is_ours() {
                continue;
            }
            let of_api = || signers.iter().filter(|settings| settings.address.api == *api);
            // Nothing says whether an organisation with pools of its own belongs to the enterprise whose secret this is.
            if near.contains(api) && of_api().all(|settings| settings.scope.is_enterprise()) {
                self.tell(api, Event::Doubted(Box::new(observation.clone())));
                continue;
            }
            for settings in of_api().filter(|settings| settings.scope.is_enterprise()) {
                self.ci.belong(settings, [repository.owner.clone()]);
            }
            self.tell(api, Event::Observed(Box::new(observation.clone())));
        }
    }

    /// The jobs and runners of a GitHub, for people.
    pub fn jobs(&self) -> impl Iterator<Item = (&str, &Dispatch)> {
        self.ci.servers.iter().map(|(api, dispatch)| (api.as_str(), dispatch))
    }

    /// Decides about all jobs and runners.
    pub(super) fn reconcile_jobs(&mut self) {
        let apis: BTreeSet<String> = self
            .ci
            .forges
            .values()
            .filter_map(|forge| forge.settings.as_ref().ok())
            .map(|settings| settings.address.api.clone())
            .collect();
        self.ci.servers.retain(|api, _| apis.contains(api));
        self.ci.organizations.retain(|api, _| apis.contains(api));
        self.ci.chronicle.retain(|api| apis.contains(api));
        for claim in self.late_offers() {
            self.tell_of(&claim, Event::Delivered { claim: claim.clone(), is_delivered: false });
        }
        let (phases, scale) = (std::mem::take(&mut self.ci.phases), std::mem::take(&mut self.ci.scale));
        self.ci.granted.clear();
        let mut wake = None::<Moment>;
        for api in apis {
            let decision = self.decide_jobs(&api);
            wake = Some(wake.map_or(decision.wake, |before| before.min(decision.wake)));
            self.ci.phases.extend(decision.phases);
            self.ci.scale.extend(decision.scale);
            let granted = decision.acquire.into_iter().map(|(set, requests)| ((api.clone(), set), requests));
            self.ci.granted.extend(granted);
            for ask in decision.asks {
                self.ask_for_jobs(&api, ask);
            }
            for (claim, order) in decision.orders {
                self.order(&api, &claim, order);
            }
        }
        self.release_without_forge();
        self.hold_runners();
        self.tend_versions();
        wake = wake.into_iter().chain(self.redeliver()).min();
        let changed = self.ci.phases.iter().filter(|(claim, phase)| phases.get(*claim) != Some(*phase));
        let claims: Vec<Name> = changed.map(|(claim, _)| claim.clone()).collect();
        for claim in claims {
            self.phase_changed(&claim);
        }
        let pools: Vec<Name> =
            self.ci.forges.keys().filter(|pool| scale.get(*pool) != self.ci.scale.get(*pool)).cloned().collect();
        self.due.extend(pools.into_iter().map(Due::Pool));
        self.listen();
        self.publish_queue();
        let wake = wake.into_iter().chain(self.ci.chronicle.due()).min();
        if let Some(wake) = wake {
            // What is due at once was asked for just now.
            self.wake(Due::Jobs, wake.max(self.now.monotonic.after(Duration::from_millis(200))));
        }
    }

    fn decide_jobs(&mut self, api: &str) -> Decision {
        let operator = &self.config.operator;
        let mut dispatch = self.ci.servers.remove(api).unwrap_or_else(|| Dispatch::new(operator));
        let settings =
            |forge: &'_ Forge| forge.settings.as_ref().ok().filter(|found| found.address.api == api).cloned();
        let forges: Vec<(Name, Settings)> =
            self.ci.forges.iter().filter_map(|(name, forge)| Some((name.clone(), settings(forge)?))).collect();
        for (name, settings) in forges.iter().filter(|(_, settings)| settings.scope.is_enterprise()) {
            let set = self.hearing(name).0.map(|set| set.0);
            let is_of_set = |key| matches!(key, JobKey::Request { scale_set, .. } if Some(scale_set) == set);
            let heard = dispatch.table().all().filter(|job| is_of_set(job.facts.key));
            let owners: Vec<String> = heard.map(|job| job.facts.repository.owner.clone()).collect();
            self.ci.belong(settings, owners);
        }
        let pools: Vec<demand::Pool> = forges
            .iter()
            .filter_map(|(name, settings)| self.job_pool(name, settings))
            .map(|pool| self.with_room(pool))
            .collect();
        let is_of = |pool: &Name| forges.iter().any(|(name, _)| name == pool);
        let claims: Vec<runners::Claim> =
            self.claims.keys().filter_map(|name| self.job_claim(name)).filter(|claim| is_of(&claim.pool)).collect();
        let is_complete = self.watches.is_listed(&super::observing::target(CLAIM)) && self.unreadable.is_empty();
        let organizations = self.ci.organizations.get(api).cloned().unwrap_or_default();
        // A pool may name any organisation: what it says counts once its login has shown that it may.
        let is_proved = |name: &Name| self.ci.forges.get(name).is_some_and(Forge::is_proved);
        let proved = forges.iter().filter(|(name, _)| is_proved(name)).map(|(_, settings)| settings);
        let rules = settings::rules(proved, organizations);
        let objects = Objects { pools: &pools, claims: &claims, is_complete, rules: &rules };
        let decision = dispatch.decide(objects, self.now);
        self.chronicle(api, &dispatch, objects, &decision);
        self.ci.servers.insert(api.to_owned(), dispatch);
        decision
    }

    /// Offers that no guest has taken for a while: they are offered again.
    fn late_offers(&mut self) -> Vec<Name> {
        let now = self.now.monotonic;
        let late = self.claims.iter_mut().filter_map(|(name, managed)| {
            let hosted = managed.runner.as_deref_mut()?;
            hosted.offered.take_if(|at| at.after(OFFERED) <= now).map(|_| name.clone())
        });
        late.collect()
    }

    fn job_pool(&self, name: &Name, settings: &Settings) -> Option<demand::Pool> {
        let spec = &self.pools.get(name)?.entry.object.spec;
        let template = self.templates.get(&name.beside(None, &spec.template_ref.name));
        let mut scaling = spec.scaling.clone();
        let size = template.and_then(super::templates::ManagedTemplate::size);
        scaling.max_replicas = pool::maximum(spec, size);
        let (scale_set, hearing) = self.hearing(name);
        let is_deleting = self.pools.get(name).is_some_and(|pool| pool.entry.object.deleting.is_some());
        Some(demand::Pool {
            name: name.clone(),
            scope: settings.scope.clone(),
            organizations: self.ci.organizations_of(settings).cloned().unwrap_or_default(),
            repositories: settings.repositories(),
            group: settings.github.runner_group.clone(),
            labels: settings.labels.iter().map(|label| label.to_lowercase()).collect(),
            scale_set: scale_set.map(|set| set.0),
            hearing,
            scaling,
            priority: settings.github.priority,
            is_paused: settings.github.paused || is_deleting,
            readiness: self.readiness(name),
            polls: settings.polls(),
            hypervisor: template.map(|template| template.cluster().to_string()).unwrap_or_default(),
            room: None,
        })
    }

    /// Whether a pool takes more jobs.
    fn readiness(&self, name: &Name) -> Readiness {
        let (Some(forge), Some(pool)) = (self.ci.forges.get(name), self.pools.get(name)) else {
            return Readiness::Unproved;
        };
        let held = || {
            let no_version = self.version_hold(name).map(|hold| hold.reason);
            no_version.or(pool.held(self.now.monotonic)).map_or(Readiness::Open, Readiness::Held)
        };
        match forge.is_proved() {
            false => Readiness::Unproved,
            true if forge.is_refused() => Readiness::Disconnected,
            true => held(),
        }
    }

    /// A claim as far as its runner concerns it; nothing if it is not for one.
    fn job_claim(&self, name: &Name) -> Option<runners::Claim> {
        let managed = self.claims.get(name)?;
        let hosted = managed.runner.as_deref()?;
        let claim = &managed.entry.object;
        let pool = name.beside(None, &claim.spec.runner_pool_ref.as_ref()?.name);
        let status = &claim.status;
        let started = status.started_time.as_ref().and_then(conditions::read);
        let has_asked = status.bootstrap_info.as_ref().is_some_and(|info| info.nonce.is_some());
        let machine = if hosted.has_ended() || managed.has_stopped() || status.phase == Some(ClaimPhase::Failed) {
            Machine::Ended
        } else if has_asked {
            Machine::Running
        } else if claim.spec.power == ClaimPower::Stopped && started.is_none() {
            Machine::Standby
        } else if managed.intended.is_none() && status.vm_ref.is_none() {
            Machine::Unplaced
        } else {
            Machine::Starting
        };
        let over = |span: Option<&Span>, since| {
            let at = change::now::later(since, span.and_then(Span::duration).unwrap_or(Duration::MAX));
            at <= self.now.wall
        };
        let is_over = over(claim.spec.ttl.as_ref(), claim.created)
            || started.is_some_and(|started| over(claim.spec.max_lifetime.as_ref(), started));
        let server = status.runner.as_ref().and_then(|runner| Some(&runner.scope.as_ref()?.server));
        let api = self.ci.forges.get(&pool).and_then(Forge::api);
        Some(runners::Claim {
            name: name.clone(),
            uid: claim.uid.clone(),
            pool,
            machine,
            since: started.unwrap_or(claim.created),
            is_off: managed.has_stopped(),
            runner: hosted.recorded(status),
            is_elsewhere: server.is_some_and(|server| api != Some(server)),
            ends: claim.deleting.is_some() || claim.is_switched(DRAIN) || is_over,
        })
    }

    /// Carries out what was decided about a claim.
    fn order(&mut self, api: &str, name: &Name, order: Order) {
        let now = self.now.monotonic;
        let Some(managed) = self.claims.get_mut(name) else { return };
        let uid = managed.entry.object.uid.clone();
        let is_off = managed.has_stopped() && matches!(managed.sight, Sight::Ours { .. });
        let Some(hosted) = managed.runner.as_deref_mut() else { return };
        match order {
            Order::Record(record) => {
                if hosted.record(record.as_ref(), api) {
                    self.due.insert(Due::Claim(name.clone()));
                }
            }
            Order::Deliver => {
                hosted.offered = Some(now);
                match self.offer(name) {
                    Some(offer) => self.call(Call::Other, Request::Border(Ask::Offer { uid, offer: Box::new(offer) })),
                    None => self.tell(api, Event::Delivered { claim: name.clone(), is_delivered: false }),
                }
            }
            Order::End(why) => {
                match why {
                    runners::Why::JobDone => hosted.note_outcome(Outcome::Worked),
                    runners::Why::NeverOnline => hosted.note_outcome(Outcome::NotStarted),
                    runners::Why::MachineEnded if is_off => hosted.note_power_off(),
                    _ => {}
                }
                if hosted.released.replace(why) != Some(why) {
                    self.due.insert(Due::Claim(name.clone()));
                }
            }
        }
    }

    /// A claim whose pool registers no runners any more waits for none, unless it has one.
    fn release_without_forge(&mut self) {
        let forges = &self.ci.forges;
        for (name, managed) in &mut self.claims {
            let Some(pool) = managed.entry.object.spec.runner_pool_ref.as_ref() else { continue };
            let pool = name.beside(None, &pool.name);
            let is_off = managed.has_stopped();
            let Some(hosted) = managed.runner.as_deref_mut() else { continue };
            let is_known = forges.get(&pool).is_some_and(|forge| forge.settings.is_ok());
            // Without the pool nobody knows where the runner is. It is ephemeral: GitHub removes it after a day offline.
            let is_free = hosted.is_bare() || !self.pools.contains_key(&pool);
            // A machine that is off can take no job.
            let is_over = is_off || (is_free && managed.entry.object.deleting.is_some());
            if !is_known && is_over && hosted.released.is_none() {
                hosted.released = Some(if is_off { runners::Why::MachineEnded } else { runners::Why::NotNeeded });
                self.due.insert(Due::Claim(name.clone()));
            }
        }
    }

    /// Says why claims that are to end wait.
    fn hold_runners(&mut self) {
        for (name, managed) in &mut self.claims {
            let Some(hosted) = managed.runner.as_deref_mut() else { continue };
            let message = match self.ci.phases.get(name) {
                Some(Phase::Busy(Some(key))) => format!("job {key} runs on it; it ends when that is done"),
                Some(Phase::Busy(None)) => "a job runs on it; it ends when that is done".to_owned(),
                _ => "it ends when its runner is removed, so that no job is given to it".to_owned(),
            };
            if hosted.held != message {
                hosted.held = message;
                self.due.insert(Due::Claim(name.clone()));
            }
        }
    }

    fn phase_changed(&mut self, claim: &Name) {
        let Some(managed) = self.claims.get(claim) else { return };
        let object = &managed.entry.object;
        let pool = object.spec.runner_pool_ref.as_ref().map(|pool| claim.beside(None, &pool.name));
        let (uid, ends) = (object.uid.clone(), object.deleting.is_some() || object.is_switched(DRAIN));
        self.due.extend(pool.map(Due::Pool));
        self.due.insert(Due::Claim(claim.clone()));
        if ends
            && let Some(hosted) = self.claims.get_mut(claim).and_then(|managed| managed.runner.as_deref_mut())
            // Before its runner is removed, GitHub may have given it a job that its guest does not know of yet.
            && hosted.is_bare()
            && !std::mem::replace(&mut hosted.was_drained, true)
        {
            self.call(Call::Other, Request::Border(Ask::Drain(uid)));
        }
    }

    /// The pool as the number of its machines is decided: what jobs need counts as wanted.
    pub(super) fn pool_with_demand(&self, name: &Name) -> Option<pool::Pool> {
        let mut pool = self.pools.get(name)?.entry.object.clone();
        if let Some(forge) = self.ci.forges.get(name) {
            let scale = self.ci.scale.get(name).copied().unwrap_or_default();
            pool.spec.replicas = Some(pool.spec.replicas.unwrap_or_default().max(scale.demand));
            if forge.settings.as_ref().is_ok_and(|settings| settings.github.paused) {
                pool.spec.scaling.min_replicas = 0;
                pool.spec.scaling.schedules.clear();
                pool.spec.scaling.spares = api::fleet::Spares::default();
                pool.spec.replicas = Some(scale.demand);
            }
        }
        Some(pool)
    }

    /// What a claim with a runner is to its pool; nothing if it has none.
    pub(super) fn runner_state(&self, name: &Name) -> Option<State> {
        let managed = self.claims.get(name)?;
        managed.runner.as_deref()?;
        let claim = &managed.entry.object;
        Some(match (claim.status.phase, self.ci.phases.get(name)) {
            _ if claim.deleting.is_some() => State::Ending,
            (Some(ClaimPhase::Failed), _) => State::Failed,
            _ if claim.is_switched(DRAIN) => State::Draining(managed.turned().unwrap_or(claim.created)),
            (_, Some(Phase::Ending)) => State::Ending,
            _ if claim.spec.power == ClaimPower::Stopped => State::Standby,
            (_, Some(Phase::Busy(_))) => State::Busy,
            (_, Some(Phase::Online(since))) => State::Idle(*since),
            _ => State::Starting,
        })
    }

    /// Adds what is known of jobs and runners to the status of a pool.
    pub(super) fn complete_pool(&self, name: &Name, members: &[pool::Member], status: &mut RunnerPoolStatus) {
        let count = |is_it: fn(&State) -> bool| {
            i32::try_from(members.iter().filter(|member| is_it(&member.state)).count()).unwrap_or(i32::MAX)
        };
        status.starting = Some(count(|state| *state == State::Starting));
        status.idle = Some(count(|state| matches!(state, State::Idle(_))));
        status.busy = Some(count(|state| matches!(state, State::Busy | State::Draining(_))));
        let version = self.complete_versions(name, status);
        let Some(managed) = self.pools.get(name) else { return };
        let object = &managed.entry.object;
        let Some(forge) = self.ci.forges.get(name) else {
            status.queued = None;
            let not_supported = object.spec.workload.as_ref().and_then(not_supported);
            let all = not_supported.into_iter().collect();
            status.conditions.extend(merge(all, &object.status.conditions, object.generation, self.now.wall));
            return;
        };
        let waiting = self.ci.scale.get(name).map_or(0, |scale| scale.waiting);
        status.queued = i32::try_from(waiting).ok();
        let (is_connected, reason, message) = forge.condition();
        let why = self.waits(name);
        let demand = match waiting {
            0 => wanted("Demand", false, "NoJobs", "no job waits for this pool"),
            1 => wanted("Demand", true, "JobsWaiting", format!("1 job waits: {why}")),
            many => wanted("Demand", true, "JobsWaiting", format!("{many} jobs wait: {why}")),
        };
        let mut all = vec![wanted("Connected", is_connected, reason, message), demand];
        let (set, listening) = self.shown_set(name);
        status.scale_set = set;
        all.extend(listening);
        all.extend(version);
        status.conditions.extend(merge(all, &object.status.conditions, object.generation, self.now.wall));
    }

    /// Why jobs wait for a pool, in a sentence.
    fn waits(&self, pool: &Name) -> String {
        let name = pool.to_string();
        let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
        let of_pool = |(key, wait): &(&JobKey, &Wait)| match wait {
            Wait::Paused { pool }
            | Wait::NotReady { pool, .. }
            | Wait::PoolFull { pool, .. }
            | Wait::NoCapacity { pool }
            | Wait::Creating { pool }
            | Wait::NotListening { pool, .. }
            | Wait::NotAssigned { pool, .. } => *pool == name,
            Wait::Booting { claim, .. } => {
                let claim = Name::read(claim).and_then(|claim| self.pool_of_claim(&claim));
                claim.as_ref() == Some(pool)
            }
            Wait::Idle { .. } | Wait::Quota { .. } | Wait::RateLimited { .. } => self.may_run(pool, key),
            Wait::OnGitHub | Wait::NoPool { .. } => false,
        };
        for dispatch in self.ci.servers.values() {
            for (_, wait) in dispatch.waits().iter().filter(of_pool) {
                *reasons.entry(said(wait)).or_default() += 1;
            }
        }
        reasons.iter().map(|(why, count)| format!("{count} {why}")).collect::<Vec<_>>().join(", ")
    }

    fn pool_of_claim(&self, claim: &Name) -> Option<Name> {
        let pool = self.claims.get(claim)?.entry.object.spec.runner_pool_ref.as_ref()?;
        Some(claim.beside(None, &pool.name))
    }

    fn may_run(&self, pool: &Name, key: &JobKey) -> bool {
        let Some(Ok(settings)) = self.ci.forges.get(pool).map(|forge| &forge.settings) else { return false };
        let job = self.ci.servers.get(&settings.address.api).and_then(|dispatch| dispatch.table().get(key));
        let found = self.job_pool(pool, settings);
        job.zip(found).is_some_and(|(job, pool)| pool.may_run(&job.facts))
    }
}

/// Says so if a pool is for a platform whose jobs the fleet cannot run. For `generic`, and without credentials, it makes machines only.
fn not_supported(workload: &Workload) -> Option<Wanted> {
    let message =
        "the fleet cannot register runners of Buildkite: it makes machines only, as with workload.type generic";
    (workload.r#type == "buildkite").then(|| wanted("Connected", false, "NotSupported", message))
}

/// Why a job waits, after a number of jobs.
fn said(wait: &Wait) -> &'static str {
    match wait {
        Wait::Paused { .. } => "because the pool is paused",
        Wait::NotReady { .. } => "because no machine can be made now",
        Wait::PoolFull { .. } => "because the pool has as many machines as it may have",
        Wait::NoCapacity { .. } => "because the hypervisor has no room",
        Wait::Creating { .. } => "for a machine that is created",
        Wait::NotAssigned { .. } => "to be assigned by GitHub",
        Wait::NotListening { .. } => "because its scale set cannot be listened to",
        Wait::Booting { .. } => "for a machine that boots",
        Wait::Idle { .. } => "to be given to a runner that is online",
        Wait::Quota { .. } => "because of a quota",
        Wait::RateLimited { .. } => "because the limit of requests is used up",
        Wait::OnGitHub | Wait::NoPool { .. } => "elsewhere",
    }
}

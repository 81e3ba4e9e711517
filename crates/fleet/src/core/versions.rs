//! Runner versions of pools: the platform is asked what it offers, machines say how it went, and the next one gets what was chosen.

use super::forges::{Call, ForgeAnswer};
use super::guests::Hosted;
use super::pools::ManagedPool;
use super::{Core, Due, Timer};
use crate::conditions::{Wanted as Condition, wanted};
use crate::forge;
use crate::jobs::demand::Wait;
use crate::jobs::runners::Phase;
use crate::jobs::settings::Settings;
use crate::notice::Notice;
use crate::object::Name;
use crate::pool::{Hold, State};
use crate::versions::{Machine, Outcome, Upkeep, Version, Wanted};
use api::fleet::{DRAIN, MachineClaimSpec, RETRY_RUNNER_VERSION, RunnerPoolStatus};
use bootstrap::{End, EndReason, Runner, Source, Step};
use change::Moment;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often the platform is asked what it offers, and after a failure.
const LIST: (Duration, Duration) = (Duration::from_secs(3_600), Duration::from_secs(60));
/// A pool without a version is looked at again after this.
const AGAIN: Duration = Duration::from_secs(60);

/// The runner versions of a pool.
#[derive(Debug)]
pub(super) struct Tended {
    /// The uid of the pool.
    uid: String,
    pub(super) upkeep: Upkeep,
    is_asking: bool,
    next_list: Moment,
}

/// What an end of a guest says about the version of its runner, and whether that holds also if the machine was to end.
fn outcome(end: &End) -> Option<(Outcome, bool)> {
    match end.reason {
        EndReason::JobCompleted => Some((Outcome::Worked, true)),
        EndReason::RunnerDeprecated => Some((Outcome::Refused, true)),
        _ if end.ran_job => None,
        EndReason::RunnerExited => Some((Outcome::NotStarted, false)),
        EndReason::StepFailed if matches!(end.step, Step::Download | Step::Verify | Step::Unpack | Step::Start) => {
            Some((Outcome::NotStarted, false))
        }
        _ => None,
    }
}

impl Hosted {
    /// Notes what became of the machine. A job that was done shows that the version works, whatever was thought before.
    pub(super) fn note_outcome(&mut self, outcome: Outcome) {
        if outcome == Outcome::Worked {
            self.outcome = Some(outcome);
        }
        self.outcome.get_or_insert(outcome);
    }

    /// What became of the machine, or is to be believed of it now.
    fn outcome(&self, no_job_for: Duration, now: Moment) -> Option<Outcome> {
        let is_late = self.awaited.is_some_and(|since| since.after(no_job_for) <= now);
        self.outcome.or(is_late.then_some(Outcome::NoJob))
    }
}

impl Core {
    /// Decides about the runner versions of every pool.
    pub(super) fn tend_versions(&mut self) {
        self.note_awaited();
        self.disregard_jobs();
        let pools: Vec<Name> = self.ci.forges.keys().cloned().collect();
        pools.iter().for_each(|pool| self.decide_versions(pool));
    }

    /// Since when jobs wait for runners that are online.
    fn note_awaited(&mut self) {
        let waits = self.ci.servers.values().flat_map(|dispatch| dispatch.waits().values());
        let awaited: BTreeSet<&str> = waits
            .filter_map(|wait| match wait {
                Wait::Idle { runner, .. } => Some(runner.as_str()),
                _ => None,
            })
            .collect();
        for (name, managed) in &mut self.claims {
            let claim = &managed.entry.object;
            let Some(hosted) = managed.runner.as_deref_mut().filter(|_| claim.spec.runner_version.is_some()) else {
                continue;
            };
            let runner = claim.status.runner.as_deref().map(|runner| runner.name.as_str());
            let is_online = matches!(self.ci.phases.get(name), Some(Phase::Online(_)));
            let is_awaited = is_online && runner.is_some_and(|runner| awaited.contains(runner));
            hosted.awaited = is_awaited.then(|| hosted.awaited.unwrap_or(self.now.monotonic));
        }
    }

    /// Takes what the end of a guest says about the version of its runner.
    pub(super) fn note_guest_end(&mut self, name: &Name, end: &End) {
        let Some((outcome, always)) = outcome(end) else { return };
        if outcome != Outcome::Worked && self.had_job(name) {
            return;
        }
        let is_ending = matches!(self.ci.phases.get(name), Some(Phase::Ending));
        let Some(managed) = self.claims.get_mut(name) else { return };
        let claim = &managed.entry.object;
        let is_ending = is_ending || claim.deleting.is_some() || claim.is_switched(DRAIN);
        if let Some(hosted) = managed.runner.as_deref_mut()
            && (always || !(is_ending || hosted.released.is_some()))
        {
            hosted.note_outcome(outcome);
        }
    }

    /// Whether a job has run on the machine of a claim, as GitHub or the guest itself has said before. Then what the guest says at its end is
    /// perhaps said by that job.
    pub(super) fn had_job(&self, name: &Name) -> bool {
        let Some(managed) = self.claims.get(name) else { return false };
        let Some(hosted) = managed.runner.as_deref() else { return false };
        let runner = hosted.runner_name();
        let has_started =
            |runner| self.ci.servers.values().any(|dispatch| dispatch.table().of_runner(runner).is_some());
        hosted.had_job || runner.is_some_and(has_started)
    }

    /// What guests have said of their runners does not count for those that had a job, as is known by now.
    pub(super) fn disregard_jobs(&mut self) {
        let said = |managed: &super::claims::Managed| {
            let hosted = managed.runner.as_deref();
            hosted.is_some_and(|hosted| {
                hosted.failure.is_some() || hosted.outcome.is_some_and(Outcome::is_claimed_failure)
            })
        };
        let said = self.claims.iter().filter(|(_, managed)| said(managed)).map(|(name, _)| name);
        let disregarded: Vec<Name> = said.filter(|name| self.had_job(name)).cloned().collect();
        for name in disregarded {
            if let Some(hosted) = self.claims.get_mut(&name).and_then(|managed| managed.runner.as_deref_mut()) {
                hosted.failure = None;
                hosted.outcome.take_if(|outcome| outcome.is_claimed_failure());
            }
        }
    }

    /// Decides about the runner versions of a pool, and reports what is new.
    pub(super) fn decide_versions(&mut self, pool: &Name) {
        let Some(forge) = self.ci.forges.get(pool) else { return };
        let Ok(settings) = &forge.settings else { return };
        let Some(managed) = self.pools.get(pool) else { return };
        let (object, uid) = (&managed.entry.object, forge.uid().to_owned());
        let Some(wanted) = Wanted::read(&settings.github) else {
            self.ci.versions.remove(pool);
            return;
        };
        let remembered = object.status.runner_versions.as_ref();
        let tended = self.ci.versions.entry(pool.clone()).or_insert_with(|| Tended::new(&uid, &wanted, remembered));
        let mut is_new = tended.next_list == Moment::default() && !tended.is_asking;
        if tended.uid != uid {
            *tended = Tended::new(&uid, &wanted, remembered);
            is_new = true;
        } else if tended.upkeep.set(wanted, remembered) {
            (tended.next_list, is_new) = (Moment::default(), true);
        }
        let retry = object.annotations.get(RETRY_RUNNER_VERSION).cloned();
        let no_job_for = tended.upkeep.no_job_for();
        let machines = self.machines_with_versions(pool, no_job_for);
        let Some(tended) = self.ci.versions.get_mut(pool) else { return };
        let changes = tended.upkeep.decide(&machines, retry.as_deref(), self.now.wall);
        if changes.is_status {
            self.due.insert(Due::Pool(pool.clone()));
        }
        for news in changes.news {
            self.notify(Notice::RunnerVersion { pool: pool.clone(), uid: uid.clone(), news });
        }
        for warning in changes.warnings {
            self.notify(Notice::RunnerVersionTrouble { pool: pool.clone(), uid: uid.clone(), warning });
        }
        if is_new {
            self.list_versions(pool);
        }
    }

    /// The machines of a pool that say something about versions, also those that are about to be made.
    fn machines_with_versions(&self, pool: &Name, no_job_for: Duration) -> Vec<Machine> {
        let claims = self.of_pool.get(pool).into_iter().flatten();
        let known = claims.filter_map(|name| {
            let managed = self.claims.get(name)?;
            let outcome = managed.runner.as_deref()?.outcome(no_job_for, self.now.monotonic);
            let is_over = matches!(self.runner_state(name), Some(State::Failed | State::Ending));
            let claim = &managed.entry.object;
            (outcome.is_some() || !is_over).then(|| Machine {
                uid: claim.uid.clone(),
                version: version(&claim.spec),
                outcome,
            })
        });
        let mut machines: Vec<Machine> = known.collect();
        let creating = self.pools.get(pool).into_iter().flat_map(ManagedPool::creating_versions);
        let creating = creating.filter(|(name, _)| !self.claims.contains_key(*name));
        machines.extend(creating.map(|(name, version)| Machine { uid: name.to_string(), version, outcome: None }));
        machines
    }

    /// The version of the next machine of a pool; nothing if the pool or the image has one. An error if there is none.
    pub(super) fn next_version(&mut self, pool: &Name) -> Result<Option<Version>, String> {
        self.decide_versions(pool);
        self.ci.versions.get(pool).map_or(Ok(None), |tended| tended.upkeep.next())
    }

    /// Why no machine can be made for want of a runner version.
    pub(super) fn version_hold(&self, pool: &Name) -> Option<Hold> {
        let message = self.ci.versions.get(pool)?.upkeep.next().err()?;
        Some(Hold { until: self.now.monotonic.after(AGAIN), reason: "NoRunnerVersion", message })
    }

    /// Claims whose runner will get no job, or shall get none.
    pub(super) fn unfit_claims(&self, pool: &Name) -> Vec<Name> {
        let Some(tended) = self.ci.versions.get(pool) else { return Vec::new() };
        let is_unfit = |name: &&Name| {
            let Some(managed) = self.claims.get(*name) else { return false };
            let claim = &managed.entry.object;
            let (Some(version), Some(hosted)) = (version(&claim.spec), managed.runner.as_deref()) else { return false };
            let gets_no_job = hosted.outcome(tended.upkeep.no_job_for(), self.now.monotonic) == Some(Outcome::NoJob);
            let is_open = claim.deleting.is_none() && !claim.is_switched(DRAIN);
            let is_idle = !matches!(self.runner_state(name), Some(State::Busy | State::Failed | State::Ending));
            // If one that has proved itself gets no job, it is not because of its version.
            let is_bad = gets_no_job && !tended.upkeep.is_proved(version);
            is_open && is_idle && (is_bad || tended.upkeep.is_given_up(version, self.now.wall))
        };
        self.of_pool.get(pool).into_iter().flatten().filter(is_unfit).cloned().collect()
    }

    /// The runner that the guest of a claim starts; nothing while it is not known where that is.
    pub(super) fn runner_program(&self, pool: &Name, claim: &MachineClaimSpec, settings: &Settings) -> Option<Runner> {
        let mut runner = settings.runner();
        if settings.github.runner.upkeep.is_some() {
            let upkeep = &self.ci.versions.get(pool)?.upkeep;
            let archive = upkeep.archive(version(claim).or(upkeep.next().ok()?)?)?;
            runner.source = Source::Download { url: archive.url.clone(), sha256: archive.sha256.clone(), ca: None };
        }
        if let Source::Download { url, ca, .. } = &mut runner.source
            && settings.github.ca_certificate.is_some()
            && server(url) == server(&settings.address.page)
        {
            *ca = Some(self.ci.forges.get(pool)?.authorities.clone()?);
        }
        Some(runner)
    }

    /// Adds what is known of runner versions to the status of a pool.
    pub(super) fn complete_versions(&self, pool: &Name, status: &mut RunnerPoolStatus) -> Option<Condition> {
        let Some(tended) = self.ci.versions.get(pool) else {
            // While the settings cannot be read, nothing is forgotten.
            let is_unknown = self.ci.forges.get(pool).is_some_and(|forge| forge.settings.is_err());
            let before = self.pools.get(pool).filter(|_| is_unknown);
            status.runner_versions = before.and_then(|pool| pool.entry.object.status.runner_versions.clone());
            return None;
        };
        status.runner_versions = Some(tended.upkeep.status());
        let (holds, reason, message) = tended.upkeep.condition()?;
        Some(wanted("RunnerVersion", holds, reason, message))
    }

    /// Asks the platform which versions it offers, if that is due.
    pub(super) fn list_versions(&mut self, pool: &Name) {
        let is_connected = self.ci.forges.get(pool).is_some_and(super::forges::Forge::is_connected);
        let now = self.now.monotonic;
        let Some(tended) = self.ci.versions.get_mut(pool) else { return };
        // The next check of the connection comes back here.
        if tended.is_asking || !is_connected {
            return;
        }
        if tended.next_list > now {
            return self.timers.set(Timer::Versions(pool.clone()), tended.next_list);
        }
        tended.is_asking = true;
        self.ask_forge(pool, forge::Ask::RunnerVersions, Call::Versions(pool.clone()));
    }

    /// Takes what the platform offers.
    pub(super) fn versions_listed(&mut self, pool: &Name, answer: ForgeAnswer) {
        let now = self.now.monotonic;
        let Some(tended) = self.ci.versions.get_mut(pool) else { return };
        tended.is_asking = false;
        let pause = match answer {
            Ok(forge::Answer::RunnerVersions(found)) => {
                tended.upkeep.listed(&found);
                LIST.0
            }
            answer => {
                let why = answer.err().map_or_else(|| "another answer was expected".to_owned(), |why| why.to_string());
                tended.upkeep.not_listed(why);
                LIST.1
            }
        };
        tended.next_list = now.after(pause);
        self.timers.set(Timer::Versions(pool.clone()), now.after(pause));
        self.decide_versions(pool);
    }
}

impl Tended {
    fn new(uid: &str, wanted: &Wanted, remembered: Option<&api::fleet::RunnerVersions>) -> Tended {
        let upkeep = Upkeep::new(wanted.clone(), remembered);
        Tended { uid: uid.to_owned(), upkeep, is_asking: false, next_list: Moment::default() }
    }
}

/// The version of a claim's runner.
fn version(claim: &MachineClaimSpec) -> Option<Version> {
    claim.runner_version.as_deref().and_then(Version::read)
}

/// Host and port of an address.
fn server(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default().to_lowercase()
}

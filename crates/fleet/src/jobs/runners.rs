//! The runner of one claim: registered, online, busy, ended. A machine ends only when its runner can take no job any more.

use super::demand::{Pool, Scope};
use super::job::{JobKey, State};
use super::table::Table;
use crate::blueprint::shortened;
use crate::object::Name;
use change::{Moment, Now};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// A runner that was not online so long after its configuration was delivered has failed.
pub const ONLINE_DEADLINE: Duration = Duration::from_secs(600);
/// A runner that was online may be offline for so long, without a job.
pub const OFFLINE_GRACE: Duration = Duration::from_secs(300);
/// A machine that is surely off can take no job: after so long it ends also if its runner could not be removed. That is an orphan then.
pub const REMOVAL_DEADLINE: Duration = Duration::from_secs(300);
/// A runner is missing in lists for so long before it counts as gone: lists are late.
pub const ABSENT_GRACE: Duration = Duration::from_secs(90);
/// A guest reports at once that a job runs, and jobs are listed then. No other machine is made for that job for so long.
const UNNAMED: Duration = Duration::from_secs(10);
/// The configuration is delivered so often before the machine is given up.
const DELIVERIES: u32 = 5;
/// The longest name that GitHub takes.
const LONGEST_NAME: usize = 64;

/// The runner of a claim, as the status of the claim keeps it. It survives a crash of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerRecord {
    /// Its id on GitHub.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The scale set that it belongs to: it runs jobs of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_set: Option<u64>,
    /// Where it is registered, whatever its pool says now; that of its pool if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// When it was registered.
    pub registered_time: Timestamp,
    /// When its configuration had reached the machine. The configuration itself is never kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_time: Option<Timestamp>,
}

/// What is known of the machine of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// It waits to be started.
    Standby,
    /// It has no place on a hypervisor yet.
    Unplaced,
    /// It is created or boots.
    Starting,
    /// It runs, and can be given the configuration of a runner.
    Running,
    /// It stopped, failed, or is gone.
    Ended,
}

/// A claim as far as its runner concerns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The object.
    pub name: Name,
    /// Its uid.
    pub uid: String,
    /// Its pool.
    pub pool: Name,
    /// Its machine.
    pub machine: Machine,
    /// Since when the machine is like that.
    pub since: Timestamp,
    /// Whether its machine ran and is off, or gone.
    pub is_off: bool,
    /// Its runner, from its status.
    pub runner: Option<RunnerRecord>,
    /// Its runner is registered at another server than its pool names now.
    pub is_elsewhere: bool,
    /// It takes no more work: it is drained or deleted.
    pub ends: bool,
}

#[cfg(test)]
impl Claim {
    /// A claim of tests: without a runner, and with a machine that starts.
    pub fn starting(name: Name, pool: Name, since: Timestamp) -> Claim {
        Claim {
            name,
            uid: "u".into(),
            pool,
            machine: Machine::Starting,
            since,
            is_off: false,
            runner: None,
            is_elsewhere: false,
            ends: false,
        }
    }
}

fn digits(text: &str, count: usize) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>().chars().take(count).collect()
}

/// What the names of all runners of an installation begin with.
pub fn prefix(operator: &str) -> String {
    format!("vp-{}-", digits(operator, 8))
}

/// The name of a claim's runner. It follows from the claim, so that a runner whose registration was not answered is found again.
pub fn runner_name(operator: &str, claim: &Name, uid: &str) -> String {
    let (prefix, suffix) = (prefix(operator), digits(uid, 10));
    let room = LONGEST_NAME.saturating_sub(prefix.len() + suffix.len() + 1);
    format!("{prefix}{}-{suffix}", shortened(&claim.name, room))
}

/// What the process knows of a claim's runner. It is lost in a crash; what matters is found out again.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The runner that this process registered, and when. Its configuration is at hand until it is delivered.
    pub(super) registered: Option<(u64, Timestamp)>,
    /// The scale set of the runner that was asked for last.
    pub(super) asked_set: Option<u64>,
    /// Where it was asked for.
    pub(super) asked_scope: Option<Scope>,
    /// Since when its machine is off.
    pub(super) off_since: Option<Moment>,
    /// When its machine had taken the configuration.
    pub(super) delivered: Option<Timestamp>,
    /// Whether an earlier registration may have been carried out.
    pub(super) is_uncertain: bool,
    /// The runner with the claim's name that an earlier registration made.
    pub(super) stray: Option<u64>,
    pub(super) is_online: bool,
    pub(super) is_busy: bool,
    /// When its guest said first that a job runs.
    busy_reported: Option<Moment>,
    online_since: Option<Timestamp>,
    offline_since: Option<Moment>,
    absent_since: Option<Moment>,
    is_absent: bool,
    /// Whether a list has shown it: before that nobody knows whether it is online.
    is_listed: bool,
    /// GitHub has said that the runner is removed, or that there is none.
    pub(super) is_removed: bool,
    /// A request is on its way.
    pub(super) is_waiting: bool,
    pub(super) retry_at: Moment,
    pub(super) failures: u32,
    pub(super) failed_deliveries: u32,
}

/// A runner as a list of GitHub shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub is_online: bool,
    /// Whether it runs a job.
    pub is_busy: bool,
}

impl Known {
    /// A runner that was registered just now.
    pub(super) fn registered(id: u64, asked_set: Option<u64>, asked_scope: Option<Scope>, at: Timestamp) -> Known {
        Known { registered: Some((id, at)), asked_set, asked_scope, ..Known::default() }
    }

    /// Where the runner of a claim with this id is registered, or whichever it has; nothing if nobody here can be asked about it.
    pub(super) fn scope_of<'a>(
        &'a self,
        id: Option<u64>,
        claim: &'a Claim,
        pool: Option<&'a Pool>,
    ) -> Option<&'a Scope> {
        let of_pool = pool.map(|pool| &pool.scope);
        match claim.runner.as_ref().filter(|runner| Some(runner.id) == id) {
            Some(_) if claim.is_elsewhere => None,
            Some(runner) => runner.scope.as_ref().or(of_pool),
            None => self.asked_scope.as_ref().or(of_pool),
        }
    }

    /// Takes what a complete list says about the runner.
    pub fn listed(&mut self, seen: Option<&Seen>, asked: Moment, now: Now) {
        let Some(seen) = seen else {
            // Two lists without it, asked for long enough apart.
            let since = *self.absent_since.get_or_insert(asked);
            self.is_absent = since.after(ABSENT_GRACE) <= asked;
            return;
        };
        (self.absent_since, self.is_absent, self.is_listed) = (None, false, true);
        (self.is_online, self.is_busy) = (seen.is_online, seen.is_busy);
        if seen.is_online {
            self.online_since.get_or_insert(now.wall);
            self.offline_since = None;
        } else if self.online_since.is_some() {
            self.offline_since.get_or_insert(asked);
        }
    }

    /// Takes what the guest of its machine says. Lists come later, and count more: a guest is no witness against its own removal.
    pub(super) fn reported(&mut self, is_busy: bool, now: Now) {
        self.is_online = true;
        self.is_busy |= is_busy;
        if is_busy {
            self.busy_reported.get_or_insert(now.monotonic);
        }
        self.online_since.get_or_insert(now.wall);
        self.offline_since = None;
    }

    /// Whether its guest has just said that a job runs: the table may still show that job as one that waits.
    pub(super) fn is_job_unnamed(&self, now: Now) -> bool {
        self.busy_reported.is_some_and(|at| now.monotonic < at.after(UNNAMED))
    }

    /// Takes that a request failed.
    pub(super) fn failed(&mut self, now: Moment, uid: &str) {
        self.retry_at = now.after(crate::backoff::pause(api::fleet::FailureClass::Transient, self.failures, uid));
        self.failures = self.failures.saturating_add(1);
    }
}

/// What the table says about a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It has started no job.
    None,
    /// It runs a job.
    Running(JobKey),
    /// It has run a job. It takes no other.
    Done(JobKey),
}

impl Work {
    /// The job that it has started.
    pub fn job(self) -> Option<JobKey> {
        match self {
            Work::None => None,
            Work::Running(key) | Work::Done(key) => Some(key),
        }
    }
}

/// The work of a runner.
pub fn work(table: &Table, runner: &str) -> Work {
    match table.of_runner(runner).map(|job| (job.facts.key, job.facts.state, job.is_open())) {
        Some((key, State::InProgress, true)) => Work::Running(key),
        Some((key, State::Completed, _)) | Some((key, State::InProgress, false)) => Work::Done(key),
        _ => Work::None,
    }
}

/// How far a runner is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It will be able to take a job.
    Starting,
    /// It can take a job since then.
    Online(Timestamp),
    /// It runs a job.
    Busy(Option<JobKey>),
    /// It takes no job any more.
    Ending,
}

/// Why a machine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its job is done.
    JobDone,
    /// It was not needed any more.
    NotNeeded,
    /// It stopped or failed by itself.
    MachineEnded,
    /// Its runner was never online.
    NeverOnline,
    /// Its runner was offline for too long.
    Offline,
    /// Its runner is not registered any more.
    RunnerGone,
    /// It did not take the configuration of its runner.
    NotDelivered,
}

impl Why {
    /// Whether the machine has failed, so that whatever waited for it needs another one.
    pub fn is_failure(self) -> bool {
        !matches!(self, Why::JobDone | Why::NotNeeded)
    }

    /// In a sentence.
    pub fn message(self) -> &'static str {
        match self {
            Why::JobDone => "its job is done",
            Why::NotNeeded => "it was not needed any more",
            Why::MachineEnded => "its machine ended",
            Why::NeverOnline => "its runner was not online within 10 minutes",
            Why::Offline => "its runner was offline for 5 minutes without a job",
            Why::RunnerGone => "its runner is not registered any more",
            Why::NotDelivered => "its machine did not take the configuration of the runner",
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Wait,
    /// Register a runner and keep its configuration at hand.
    Register,
    /// Find the runner with the claim's name: there may be one.
    Find,
    /// Write the runner to the status of the claim, or that there is none.
    Record(Option<RunnerRecord>),
    /// Deliver the configuration to the machine.
    Deliver,
    /// Remove the runner with this id. GitHub refuses that while it is busy.
    Remove(u64),
    /// Destroy the machine and delete the claim.
    End(Why),
}

/// All that a decision about a runner depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// What the process knows.
    pub known: &'a Known,
    /// What the table says.
    pub work: Work,
    /// The name that the runner has, or will have.
    pub name: &'a str,
    /// Its runner is not where the runners of its pool are registered now, or does not belong to their scale set.
    pub is_foreign: bool,
    /// The present moment.
    pub now: Now,
}

/// Decides about a runner.
pub fn decide(observed: &Observed<'_>) -> (Phase, Step) {
    let (phase, step) = match observed.claim.machine {
        Machine::Ended if matches!(observed.work, Work::Done(_)) => (Phase::Ending, leave(observed, Why::JobDone)),
        Machine::Ended => (Phase::Ending, leave(observed, Why::MachineEnded)),
        Machine::Standby | Machine::Unplaced | Machine::Starting if observed.claim.ends => {
            (Phase::Ending, leave(observed, Why::NotNeeded))
        }
        Machine::Standby | Machine::Unplaced | Machine::Starting => (Phase::Starting, Step::Wait),
        Machine::Running => running(observed),
    };
    let is_early = observed.known.retry_at > observed.now.monotonic;
    match step {
        // A registration on its way would leave a runner behind if the claim ended now.
        Step::Register | Step::Find | Step::Remove(_) | Step::Deliver | Step::End(_) if observed.known.is_waiting => {
            (phase, Step::Wait)
        }
        Step::Register | Step::Find | Step::Remove(_) | Step::Deliver if is_early => (phase, Step::Wait),
        step => (phase, step),
    }
}

fn running(observed: &Observed<'_>) -> (Phase, Step) {
    let Observed { claim, known, now, .. } = observed;
    let preparing = |step: Step| match claim.ends {
        true => (Phase::Ending, leave(observed, Why::NotNeeded)),
        false => (Phase::Starting, step),
    };
    let recorded = claim.runner.as_ref();
    if let Some((id, registered_time)) = known.registered
        && recorded.is_none_or(|runner| runner.id != id)
    {
        let (name, scale_set) = (observed.name.to_owned(), known.asked_set);
        let scope = known.asked_scope.clone();
        let record = RunnerRecord { id, name, scale_set, scope, registered_time, delivered_time: None };
        return preparing(Step::Record(Some(record)));
    }
    let Some(runner) = recorded else {
        return preparing(match known.stray {
            Some(stray) => Step::Remove(stray),
            None if known.is_uncertain => Step::Find,
            None => Step::Register,
        });
    };
    if runner.delivered_time.is_some() {
        return serving(observed, runner);
    }
    if let Some(delivered) = known.delivered {
        let delivered = RunnerRecord { delivered_time: Some(delivered), ..runner.clone() };
        return (Phase::Starting, Step::Record(Some(delivered)));
    }
    if known.registered.is_some() && !observed.is_foreign {
        return match known.failed_deliveries >= DELIVERIES {
            true => (Phase::Ending, leave(observed, Why::NotDelivered)),
            false => preparing(Step::Deliver),
        };
    }
    // Another process registered it, and its configuration is lost, unless it was delivered all the same; or it is of no use any more.
    if known.is_busy || observed.work != Work::None {
        let delivered = RunnerRecord { delivered_time: Some(now.wall), ..runner.clone() };
        return (Phase::Busy(None), Step::Record(Some(delivered)));
    }
    preparing(if known.is_removed { Step::Record(None) } else { Step::Remove(runner.id) })
}

/// A runner whose machine has its configuration.
fn serving(observed: &Observed<'_>, runner: &RunnerRecord) -> (Phase, Step) {
    let Observed { claim, known, work, .. } = observed;
    let leaving = |why| (Phase::Ending, leave(observed, why));
    match work {
        Work::Done(_) => return leaving(Why::JobDone),
        Work::Running(key) => return (Phase::Busy(Some(*key)), Step::Wait),
        Work::None => {}
    }
    if known.is_removed || known.is_absent {
        // It was perhaps removed because it was overdue: that stays the reason.
        let why = overdue(observed, runner).filter(|_| known.is_removed).unwrap_or(Why::RunnerGone);
        return leaving(if claim.ends { Why::NotNeeded } else { why });
    }
    if known.is_busy {
        return (Phase::Busy(None), Step::Wait);
    }
    if claim.ends || observed.is_foreign {
        return leaving(Why::NotNeeded);
    }
    if let Some(why) = overdue(observed, runner) {
        return leaving(why);
    }
    match known.online_since {
        Some(since) if known.is_online => (Phase::Online(since), Step::Wait),
        Some(_) | None => (Phase::Starting, Step::Wait),
    }
}

/// Why a runner without a job is given up.
fn overdue(observed: &Observed<'_>, runner: &RunnerRecord) -> Option<Why> {
    let Observed { known, now, .. } = observed;
    let delivered = runner.delivered_time.unwrap_or(runner.registered_time);
    let is_offline = known.offline_since.is_some_and(|since| since.after(OFFLINE_GRACE) <= now.monotonic);
    let is_late = known.is_listed && change::now::later(delivered, ONLINE_DEADLINE) <= now.wall;
    match known.online_since {
        Some(_) => is_offline.then_some(Why::Offline),
        None => is_late.then_some(Why::NeverOnline),
    }
}

/// Ends a machine once its runner is removed from GitHub, or was never registered.
fn leave(observed: &Observed<'_>, why: Why) -> Step {
    let Observed { claim, known, now, .. } = observed;
    let recorded = claim.runner.as_ref().map(|runner| runner.id);
    let runner = known.registered.map(|(id, _)| id).or(recorded).or(known.stray);
    let is_late = known.off_since.is_some_and(|since| since.after(REMOVAL_DEADLINE) <= now.monotonic);
    match runner {
        _ if known.is_removed || is_late => Step::End(why),
        Some(id) => Step::Remove(id),
        None if known.is_uncertain => Step::Find,
        None => Step::End(why),
    }
}

#[cfg(test)]
mod tests;

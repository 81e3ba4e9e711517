//! The life of one claim: what is known of it and of its machine in, the next step and its status out.

mod ending;
pub(crate) mod runner;
mod status;
#[cfg(test)]
mod tests;

use crate::conditions;
use crate::hypervisor::{GuestNetwork, MachineId, Owner, Power, Target};
use crate::jobs::runners::Why;
use crate::object::Object;
use api::fleet::{
    BUSY, CLEANUP_FINALIZER, ClaimPhase, ClaimPower, DRAIN, FailureClass, MachineClaimSpec, MachineClaimStatus,
    ReadinessSignal, SeedDelivery, VmRef,
};
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

/// A claim.
pub type Claim = Object<MachineClaimSpec, MachineClaimStatus>;

/// So long a request that was sent may still be carried out although nobody waits for its answer any more. The hands give up earlier.
pub const REQUESTS_LAST: Duration = Duration::from_secs(60);
/// A machine that is not gone so long after its claim was deleted needs a person, unless its hypervisor says otherwise.
pub const CLEANUP_DEADLINE: Duration = Duration::from_secs(10 * 60);
/// So many failures in a row take a quarter of an hour with the pauses between them: somebody should look.
const STUCK_AFTER: u32 = 14;
/// A pool replaces a machine that is halted for so long.
const HALTED_FOR: Duration = Duration::from_secs(5 * 60);
/// The pauses between two questions to a guest for its addresses: short ones at first, because some guests boot within a second.
const ASK_GUEST: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));

/// What is known of a claim's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// Nothing: it has to be inspected.
    Unknown,
    /// It was not there at this moment.
    Absent(Moment),
    /// The id belonged to somebody else at this moment.
    Foreign(Moment),
    /// A machine with its id and its name was there at this moment, without a record that says whose it is: somebody has overwritten that.
    Unrecorded {
        /// When.
        at: Moment,
        /// Whether it runs.
        power: Power,
        /// The line that is missing in its description.
        record: Box<str>,
    },
    /// It is there, and it is this claim's.
    Ours {
        /// Whether it runs.
        power: Power,
        /// Whether it is as the template wants it.
        is_configured: bool,
        /// The node it is on.
        node: String,
    },
}

/// Whether a machine can be created now, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// This one.
    At(VmRef),
    /// Not now.
    Waiting {
        /// Why, in one word.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
    },
}

/// The last failure of an operation on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The step that has failed; after a restart nobody knows, and it counts as a look.
    pub of: Step,
    /// Its class.
    pub class: FailureClass,
    /// What happened.
    pub message: String,
    /// When it is tried again.
    pub retry_at: Moment,
    /// How many there were in a row.
    pub count: u32,
    /// When the first of them happened.
    pub since: Moment,
    /// How much later this one happened.
    pub lasted: Duration,
}

/// A machine that its hypervisor has halted: it is switched on, and its guest stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halted {
    /// In which state, as the hypervisor calls it, such as `io-error`.
    pub state: String,
    /// Since when that is known.
    pub since: Moment,
    /// When it was seen last.
    pub seen: Moment,
}

/// When things happened, by the wall clock as it is now: their ages go on however the clock is set meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The claim was created.
    pub created: Timestamp,
    /// Its machine was started.
    pub started: Option<Timestamp>,
    /// The claim was deleted.
    pub deleting: Option<Timestamp>,
}

/// All that a decision about a claim depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The claim as the server has it.
    pub claim: &'a Claim,
    /// What is known of its machine.
    pub sight: &'a Sight,
    /// Whether an operation on the machine is in flight.
    pub is_working: bool,
    /// The last failure, if nothing has succeeded since.
    pub failed: Option<&'a Failed>,
    /// A claim whose machine cannot be made for so long fails, so that its pool makes another one; nothing for a claim that nobody would replace.
    pub provisioning: Option<Duration>,
    /// A machine that is not gone so long after its claim was deleted needs a person.
    pub cleanup: Duration,
    /// When things happened.
    pub since: Since,
    /// Until when a request to create the machine may still be carried out.
    pub unresolved_until: Moment,
    /// Whether a machine can be created or configured now.
    pub ground: &'a Ground,
    /// What the template says about readiness; nothing if there is no template any more.
    pub readiness: Option<(ReadinessSignal, Duration)>,
    /// What the guest has reported of its network.
    pub guest: &'a GuestNetwork,
    /// When the guest was asked last.
    pub asked_guest: Option<Moment>,
    /// Why the last question to the guest was not answered, if it was not.
    pub guest_trouble: Option<&'a str>,
    /// Whether its hypervisor has halted it.
    pub halted: Option<&'a Halted>,
    /// How its cloud-init data gets into it, if it has any.
    pub seed: Option<SeedDelivery>,
    /// Whether the guest needs its image at every boot, so that it stays as long as the machine.
    pub keeps_image: bool,
    /// Whether it has taken that data, and nothing of it is left on the hypervisor.
    pub is_seeded: bool,
    /// What is known of its runner; nothing if it is not for one.
    pub runner: Option<runner::Runner<'a>>,
    /// The present moment.
    pub now: Now,
}

/// What to do next. There is at most one such step at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Wait,
    /// Add the finalizer, before anything else.
    AddFinalizer,
    /// Remove the finalizer: there is no machine, or a person takes the responsibility.
    RemoveFinalizer,
    /// Delete the claim; its machine is destroyed because of that.
    Delete(End),
    /// Find out whether the machine exists, and whose it is.
    Inspect,
    /// Create it under the recorded id.
    Create,
    /// Configure it.
    Configure,
    /// Start it.
    Start,
    /// Ask the guest for its addresses.
    AskGuest,
    /// Let the guest agent carry out its cloud-init data.
    Deliver,
    /// Take away the image of its cloud-init data.
    RemoveSeed,
    /// Destroy it.
    Destroy,
}

/// Why a claim ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The machine has switched itself off, or was switched off.
    Stopped,
    /// The time to live of the claim is over.
    Expired,
    /// The maximum lifetime of the machine is over.
    TooOld,
    /// It was drained.
    Drained,
    /// Its runner is gone.
    Runner(Why),
}

/// A decision about one claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to do.
    pub step: Step,
    /// The status.
    pub status: MachineClaimStatus,
    /// When to decide again if nothing happens before.
    pub wake: Option<Moment>,
}

/// What a decision says, before it becomes a status.
pub(crate) struct Draft {
    pub(crate) step: Step,
    pub(crate) phase: ClaimPhase,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) vm_ref: Option<VmRef>,
    pub(crate) wake: Option<Moment>,
}

impl Draft {
    pub(crate) fn new(step: Step, phase: ClaimPhase, reason: &str, message: impl Into<String>) -> Draft {
        let reason = reason.to_owned();
        Draft { step, phase, reason, message: message.into(), vm_ref: None, wake: None }
    }

    pub(crate) fn wake_at(mut self, wake: Moment) -> Draft {
        self.wake = Some(self.wake.map_or(wake, |before| before.min(wake)));
        self
    }
}

/// Whose the machine of a claim is.
pub fn owner(claim: &Claim, operator: &str) -> Owner {
    Owner { operator: operator.to_owned(), claim: claim.name.to_string(), uid: claim.uid.clone() }
}

/// The machine of a claim as the target of an operation.
pub fn target(claim: &Claim, operator: &str) -> Option<Target> {
    let vm_ref = claim.status.vm_ref.as_ref()?;
    let (id, node) = (MachineId(vm_ref.vm_id.clone()), vm_ref.node.clone());
    Some(Target { id, node, owner: owner(claim, operator) })
}

/// The reason of a claim that ends because of its runner, in one word.
pub fn ended_reason(why: Why) -> &'static str {
    runner::reason(why)
}

/// Decides about a claim.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let draft = match observed.claim.deleting {
        Some(since) => ending::decide(observed, observed.since.deleting.unwrap_or(since)),
        None => live(observed),
    };
    let draft = runner::gate(observed, draft);
    let (step, wake) = (draft.step, draft.wake);
    Decision { step, status: status::status(observed, draft), wake }
}

/// A claim that is not being deleted.
fn live(observed: &Observed<'_>) -> Draft {
    let Observed { claim, now, since, .. } = observed;
    let ends = [
        (claim.spec.ttl.as_ref(), Some(since.created), End::Expired),
        (claim.spec.max_lifetime.as_ref(), since.started, End::TooOld),
    ];
    let mut wake = None::<Moment>;
    for (span, since, end) in ends {
        let Some((span, since)) = span.and_then(api::fleet::Span::duration).zip(since) else { continue };
        let is_of_pool = claim.spec.runner_pool_ref.is_some() && end == End::TooOld;
        let span = if is_of_pool { span - early(span, &claim.uid) } else { span };
        let at = change::now::later(since, span);
        if at <= now.wall {
            return deletion(end);
        }
        let at = now.moment_of(at);
        wake = Some(wake.map_or(at, |before| before.min(at)));
    }
    let mut draft = if claim.is_switched(DRAIN) { drain(observed) } else { progress(observed) };
    if let Some(at) = wake {
        draft = draft.wake_at(at);
    }
    draft
}

/// How much earlier a machine ends than the others of its pool, up to a tenth: those that were started together do not end together.
fn early(span: Duration, uid: &str) -> Duration {
    let part = u32::try_from(crate::backoff::hash(uid, 0) % 1_024).unwrap_or_default();
    span.mul_f64(f64::from(part) / 10_240.0)
}

fn deletion(end: End) -> Draft {
    let (reason, message) = match end {
        End::Stopped => (ENDS[0], "the machine has stopped, so that it is destroyed with its claim"),
        End::Expired => (ENDS[1], "the ttl of the claim is over"),
        End::TooOld => (ENDS[2], "the maximum lifetime of the machine is over"),
        End::Drained => (ENDS[3], "the machine is drained and not busy"),
        End::Runner(why) => (runner::reason(why), why.message()),
    };
    Draft::new(Step::Delete(end), ClaimPhase::Terminating, reason, message)
}

/// The reasons for which the operator deletes a claim.
const ENDS: [&str; 10] = [
    "VMShutdownDetected",
    "Expired",
    "MaxLifetimeReached",
    "Drained",
    "JobCompleted",
    "RunnerNotStarted",
    "RunnerOffline",
    "RunnerRemoved",
    "GuestFailed",
    "RunnerDeprecated",
];

fn drain(observed: &Observed<'_>) -> Draft {
    if !observed.claim.is_switched(BUSY) {
        return deletion(End::Drained);
    }
    let seen = progress(observed);
    if seen.phase == ClaimPhase::Failed || matches!(seen.step, Step::Delete(_)) {
        // There is nothing left that could be busy.
        return seen;
    }
    let message = "the machine takes no more work, and ends when it is not busy any more";
    let step = if seen.step == Step::Inspect { Step::Inspect } else { Step::Wait };
    Draft { wake: seen.wake, ..Draft::new(step, ClaimPhase::Draining, "Busy", message) }
}

/// A claim on its way to a machine that is ready.
fn progress(observed: &Observed<'_>) -> Draft {
    let Observed { claim, sight, now, .. } = observed;
    if claim.status.phase == Some(ClaimPhase::Failed) {
        return still_failed(claim);
    }
    if !claim.has_finalizer(CLEANUP_FINALIZER) {
        return Draft::new(Step::AddFinalizer, ClaimPhase::Pending, "Accepted", "the claim is accepted");
    }
    if let Some(failed) = observed.failed.filter(|failed| failed.class == FailureClass::Permanent) {
        return Draft::new(Step::Wait, ClaimPhase::Failed, "ProvisioningFailed", failed.message.clone());
    }
    if let Some(message) = overdue(observed) {
        return Draft::new(Step::Wait, ClaimPhase::Failed, "ProvisioningTimeout", message);
    }
    let Some(vm_ref) = &claim.status.vm_ref else { return place(observed) };
    let was_created = claim.status.created_time.is_some();
    match sight {
        Sight::Unknown => {
            let inspecting = format!("looking for machine {}", vm_ref.vm_id);
            let draft = working(observed, Step::Inspect, "Inspecting", inspecting);
            as_before(claim, draft)
        }
        Sight::Absent(_) | Sight::Foreign(_) if was_created => {
            let message = format!("machine {} was deleted by somebody else", vm_ref.vm_id);
            Draft::new(Step::Wait, ClaimPhase::Failed, "MachineVanished", message)
        }
        Sight::Unrecorded { record, .. } => {
            let message = ending::unrecorded(vm_ref, record);
            Draft::new(Step::Wait, ClaimPhase::Failed, ending::UNRECORDED, message)
        }
        // A request to create it under this id may still be carried out once the other machine is gone.
        Sight::Foreign(at) if *at < observed.unresolved_until => {
            let message =
                format!("machine {} is somebody else's, and an earlier request may still arrive", vm_ref.vm_id);
            match now.monotonic < observed.unresolved_until {
                true => Draft::new(Step::Wait, ClaimPhase::Provisioning, "WaitingForRequests", message)
                    .wake_at(observed.unresolved_until),
                false => working(observed, Step::Inspect, "Inspecting", message),
            }
        }
        // The id was taken before the machine was created: another one is recorded first.
        Sight::Foreign(_) => place(observed),
        Sight::Absent(_) => match observed.ground {
            Ground::At(ground) if ground.vm_id == vm_ref.vm_id && ground.node != vm_ref.node => place(observed),
            Ground::At(_) => working(observed, Step::Create, "Cloning", format!("creating machine {}", vm_ref.vm_id)),
            Ground::Waiting { .. } => place(observed),
        },
        Sight::Ours { is_configured: false, .. } => match observed.ground {
            Ground::At(_) => {
                working(observed, Step::Configure, "Configuring", "setting hardware, network and cloud-init")
            }
            Ground::Waiting { .. } => place(observed),
        },
        Sight::Ours { power: Power::Unknown, .. } => {
            let message = "the hypervisor does not say whether the machine runs";
            as_before(claim, Draft::new(Step::Wait, ClaimPhase::Provisioning, "PowerUnknown", message))
        }
        Sight::Ours { power: Power::Stopped, .. } if claim.status.started_time.is_some() => deletion(End::Stopped),
        Sight::Ours { power: Power::Stopped, .. } if claim.spec.power == ClaimPower::Stopped => {
            let message = "the machine is configured, and is started once spec.power is Running";
            Draft::new(Step::Wait, ClaimPhase::Provisioning, "Standby", message)
        }
        Sight::Ours { power: Power::Stopped, .. } => working(observed, Step::Start, "Starting", "starting the machine"),
        Sight::Ours { power: Power::Running, .. } => match observed.halted {
            Some(halted) => stands_still(observed, halted),
            None => ready(observed, *now),
        },
    }
}

/// Why a claim that its pool replaces is given up: its machine has a place, and could not be made there for too long. While there is no place, another
/// claim would have none either.
fn overdue(observed: &Observed<'_>) -> Option<String> {
    let (most, failed, status) = (observed.provisioning?, observed.failed?, &observed.claim.status);
    let is_over = status.vm_ref.is_some() && status.started_time.is_none() && failed.lasted >= most;
    let attempts = failed.count;
    is_over.then(|| {
        format!(
            "no machine after {attempts} attempts in {} s, so that another claim is made: {}",
            failed.lasted.as_secs(),
            failed.message
        )
    })
}

/// A machine that the hypervisor has halted. It may go on when there is space again, but a pool does not wait for long.
fn stands_still(observed: &Observed<'_>, halted: &Halted) -> Draft {
    let message = format!(
        "the hypervisor has halted the machine ({}): see the space and the state of its storage, then resume it",
        halted.state
    );
    let is_replaced = observed.provisioning.is_some() && halted.since.after(HALTED_FOR) <= halted.seen;
    let phase = if is_replaced { ClaimPhase::Failed } else { ClaimPhase::Bootstrapping };
    Draft::new(Step::Wait, phase, "MachineHalted", message)
}

fn still_failed(claim: &Claim) -> Draft {
    as_before(claim, Draft::new(Step::Wait, ClaimPhase::Failed, "ProvisioningFailed", ""))
}

/// What nobody knows holds the last state: a machine that was ready is not less ready because it is looked at.
fn as_before(claim: &Claim, draft: Draft) -> Draft {
    let known = claim.status.conditions.iter().find(|condition| condition.r#type == "Ready");
    let is_settled =
        matches!(claim.status.phase, Some(ClaimPhase::Ready | ClaimPhase::Bootstrapping | ClaimPhase::Failed));
    match (claim.status.phase, known) {
        (Some(phase), Some(known)) if is_settled => {
            Draft { phase, reason: known.reason.clone(), message: known.message.clone(), ..draft }
        }
        _ => draft,
    }
}

/// Records which machine it will be, or waits.
fn place(observed: &Observed<'_>) -> Draft {
    match observed.ground {
        Ground::At(vm_ref) => {
            let message = format!("machine {} on {}", vm_ref.vm_id, vm_ref.node.as_deref().unwrap_or("any node"));
            let draft = Draft::new(Step::Wait, ClaimPhase::Provisioning, "Placed", message);
            Draft { vm_ref: Some(vm_ref.clone()), ..draft }
        }
        Ground::Waiting { reason, message } => {
            let phase = match observed.claim.status.created_time {
                Some(_) => ClaimPhase::Provisioning,
                None => ClaimPhase::Pending,
            };
            Draft::new(Step::Wait, phase, reason, message.clone())
        }
    }
}

/// An operation, unless one is in flight or has just failed.
fn working(observed: &Observed<'_>, step: Step, reason: &'static str, message: impl Into<String>) -> Draft {
    let draft = Draft::new(Step::Wait, ClaimPhase::Provisioning, reason, message);
    match observed.failed {
        Some(failed) => {
            let is_due = failed.retry_at <= observed.now.monotonic;
            let step = if is_due && !observed.is_working { step } else { Step::Wait };
            let mut message = failed.message.clone();
            let reason = match failed.class {
                FailureClass::Transient if failed.count >= STUCK_AFTER => {
                    message = format!(
                        "{message}; this was attempt {}, and the operator keeps trying: look at the hypervisor, or delete the claim",
                        failed.count
                    );
                    "ProvisioningStuck"
                }
                FailureClass::Transient => "Retrying",
                FailureClass::Permanent => "ProvisioningFailed",
                FailureClass::Configuration => "ConfigurationError",
                FailureClass::Resource => "InsufficientResources",
            };
            let draft = Draft { step, reason: reason.to_owned(), message, ..draft };
            if is_due { draft } else { draft.wake_at(failed.retry_at) }
        }
        None if observed.is_working => draft,
        None => Draft { step, ..draft },
    }
}

/// A machine that runs.
fn ready(observed: &Observed<'_>, now: Now) -> Draft {
    let Observed { claim, readiness, .. } = observed;
    let is_ready = claim.status.ready_time.is_some();
    let (signal, timeout) = readiness.unwrap_or((ReadinessSignal::Running, Duration::MAX));
    let has_address = !observed.guest.addresses.is_empty();
    let is_seeded = observed.is_seeded || claim.status.seeded_time.is_some();
    let must_deliver = observed.seed == Some(SeedDelivery::GuestAgent) && !is_seeded;
    let is_up = match observed.runner {
        Some(runner) => runner.has_asked,
        None => !must_deliver && (signal == ReadinessSignal::Running || has_address),
    };
    if is_ready || is_up {
        let draft = Draft::new(Step::Wait, ClaimPhase::Ready, "Ready", "the machine is ready");
        // Without an address nobody knows whether the guest has read its image: that goes with the machine.
        let has_read = has_address || observed.runner.is_some_and(|runner| runner.has_asked);
        let has_image = observed.seed == Some(SeedDelivery::Iso) && !observed.keeps_image && !is_seeded && has_read;
        return if has_image { remove_seed(observed, draft) } else { draft };
    }
    let started = observed.since.started.unwrap_or(now.wall);
    let deadline = change::now::later(started, timeout);
    let wrong = observed.failed.filter(|failed| failed.class == FailureClass::Configuration);
    if deadline <= now.wall {
        let mut message = match has_address {
            _ if observed.runner.is_some() && !must_deliver => format!(
                "virtpilot-guest has not asked for the credentials of its runner within {} s: see the console of the machine",
                timeout.as_secs()
            ),
            true => format!("cloud-init has not ended within {} s", timeout.as_secs()),
            false => format!("the guest agent reported no address within {} s", timeout.as_secs()),
        };
        if let Some(cause) = wrong.map(|failed| failed.message.as_str()).or(observed.guest_trouble) {
            message = format!("{message}: {cause}");
        }
        return Draft::new(Step::Wait, ClaimPhase::Failed, "BootTimeout", message);
    }
    let (reason, message) = match wrong {
        Some(failed) => ("ConfigurationError", failed.message.as_str()),
        None if observed.runner.is_some() && !must_deliver && (has_address || signal == ReadinessSignal::Running) => {
            ("WaitingForRunner", "the machine runs, and its guest has not asked for the credentials of its runner yet")
        }
        None if has_address => ("WaitingForCloudInit", "the guest agent answers, and cloud-init has not ended yet"),
        None => ("WaitingForGuest", "the machine runs, and its guest agent has reported no address yet"),
    };
    let draft = Draft::new(Step::Wait, ClaimPhase::Bootstrapping, reason, message);
    let booting = Duration::try_from(now.wall.duration_since(started)).unwrap_or_default();
    let pause = (booting / 4).clamp(ASK_GUEST.0, ASK_GUEST.1);
    let again = observed.asked_guest.map_or(now.monotonic, |asked| asked.after(pause));
    // Until a person has changed something, the answer stays the same.
    let again = wrong.map_or(again, |failed| again.max(failed.retry_at));
    let draft = draft.wake_at(now.moment_of(deadline));
    match again <= now.monotonic {
        // Nothing is missing but a request of the guest.
        _ if reason == "WaitingForRunner" => draft,
        // The answer that is on its way wakes it.
        true if observed.is_working => draft,
        true => Draft { step: if has_address { Step::Deliver } else { Step::AskGuest }, ..draft },
        false => draft.wake_at(again),
    }
}

/// A machine that is ready, and whose image can go. What fails there does not make it less ready.
fn remove_seed(observed: &Observed<'_>, draft: Draft) -> Draft {
    let Some(failed) = observed.failed else {
        return if observed.is_working { draft } else { Draft { step: Step::RemoveSeed, ..draft } };
    };
    let message = format!("the machine is ready; the image of its cloud-init data is still there: {}", failed.message);
    let draft = Draft { message, ..draft };
    match failed.retry_at <= observed.now.monotonic {
        true if observed.is_working => draft,
        true => Draft { step: Step::RemoveSeed, ..draft },
        false => draft.wake_at(failed.retry_at),
    }
}

/// The time that a status shows.
pub(crate) fn time_of(time: Option<&api::fleet::Time>) -> Option<Timestamp> {
    time.and_then(conditions::read)
}

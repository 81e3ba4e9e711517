//! The life of one claim, as tables.

use super::{Claim, Decision, End, Failed, Ground, Observed, Sight, Since, Step, decide};
use crate::hypervisor::{GuestNetwork, Power};
use crate::object::{Name, Object};
use api::fleet::{
    CLEANUP_FINALIZER, ClaimPhase, ClaimPower, FailureClass, LocalRef, MachineClaimSpec, MachineClaimStatus,
    ReadinessSignal, SeedDelivery, Span, Time, VmRef,
};
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

fn at(second: u64) -> Now {
    let wall = Timestamp::from_second(1_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn time(second: u64) -> Time {
    Time(at(second).wall.to_string())
}

fn claim() -> Claim {
    Object {
        name: Name::new("ci", "one"),
        uid: "u-1".into(),
        version: "1".into(),
        generation: 1,
        created: at(0).wall,
        deleting: None,
        finalizers: vec![CLEANUP_FINALIZER.into()],
        annotations: std::collections::BTreeMap::new(),
        spec: MachineClaimSpec {
            template_generation: None,
            template_ref: LocalRef { name: "small".into() },
            runner_pool_ref: None,
            power: ClaimPower::Running,
            ttl: None,
            max_lifetime: None,
            runner_version: None,
            workload_config: None,
        },
        status: MachineClaimStatus::default(),
    }
}

fn vm(id: &str, node: &str) -> VmRef {
    VmRef { hypervisor_cluster: "ci/pve".into(), vm_id: id.into(), node: Some(node.into()) }
}

fn placed() -> Claim {
    let status = MachineClaimStatus { vm_ref: Some(vm("200", "a")), ..MachineClaimStatus::default() };
    Claim { status, ..claim() }
}

fn started() -> Claim {
    let mut claim = placed();
    (claim.status.created_time, claim.status.started_time) = (Some(time(1)), Some(time(2)));
    claim
}

fn ours(power: Power, is_configured: bool) -> Sight {
    Sight::Ours { power, is_configured, node: "a".into() }
}

fn failed(class: FailureClass, message: &str, retry_at: u64) -> Failed {
    Failed {
        of: Step::Inspect,
        class,
        message: message.into(),
        retry_at: at(retry_at).monotonic,
        count: 2,
        since: at(0).monotonic,
        lasted: Duration::ZERO,
    }
}

/// What a decision depends on beside the claim and its machine.
#[derive(Default)]
struct More {
    is_working: bool,
    failed: Option<Failed>,
    provisioning: Option<Duration>,
    cleanup: Option<Duration>,
    unresolved: u64,
    ground: Option<Ground>,
    guest: GuestNetwork,
    seed: Option<SeedDelivery>,
    keeps_image: bool,
    is_seeded: bool,
    runner: Option<super::runner::Runner<'static>>,
}

/// A decision with nothing in flight, on good ground.
fn decided(claim: &Claim, sight: &Sight, now: u64) -> Decision {
    decided_with(claim, sight, now, &More::default())
}

fn decided_with(claim: &Claim, sight: &Sight, now: u64, more: &More) -> Decision {
    let ground = Ground::At(claim.status.vm_ref.clone().unwrap_or_else(|| vm("200", "a")));
    decide(&Observed {
        claim,
        sight,
        is_working: more.is_working,
        failed: more.failed.as_ref(),
        provisioning: more.provisioning,
        cleanup: more.cleanup.unwrap_or(super::CLEANUP_DEADLINE),
        since: Since {
            created: claim.created,
            started: super::time_of(claim.status.started_time.as_ref()),
            deleting: claim.deleting,
        },
        unresolved_until: Moment::since_start(Duration::from_secs(more.unresolved)),
        ground: more.ground.as_ref().unwrap_or(&ground),
        readiness: Some((ReadinessSignal::AgentAddress, Duration::from_secs(600))),
        guest: &more.guest,
        asked_guest: None,
        guest_trouble: None,
        halted: None,
        seed: more.seed,
        keeps_image: more.keeps_image,
        is_seeded: more.is_seeded,
        runner: more.runner,
        now: at(now),
    })
}

fn absent(second: u64) -> Sight {
    Sight::Absent(at(second).monotonic)
}

/// P6: the way of a claim, step by step.
#[test]
fn a_claim_walks_from_its_finalizer_to_a_machine_that_is_ready() {
    let bare = Claim { finalizers: Vec::new(), ..claim() };
    assert_eq!(decided(&bare, &absent(0), 1).step, Step::AddFinalizer);
    let placed_now = decided(&claim(), &absent(0), 1);
    assert_eq!((placed_now.step, placed_now.status.vm_ref), (Step::Wait, Some(vm("200", "a"))), "recorded first");
    let steps = [
        (placed(), Sight::Unknown, Step::Inspect),
        (placed(), absent(0), Step::Create),
        (placed(), ours(Power::Stopped, false), Step::Configure),
        (placed(), ours(Power::Stopped, true), Step::Start),
        (placed(), ours(Power::Running, true), Step::AskGuest),
    ];
    for (claim, sight, step) in steps {
        assert_eq!(decided(&claim, &sight, 1).step, step, "{sight:?}");
    }
    let guest = GuestNetwork { addresses: vec!["192.0.2.7".to_owned()], mac: Some("bc:24:11:00:00:07".into()) };
    let more = More { guest, ..More::default() };
    let ready = decided_with(&started(), &ours(Power::Running, true), 9, &more);
    assert_eq!((ready.step, ready.status.phase), (Step::Wait, Some(ClaimPhase::Ready)));
    let network = ready.status.network_info.unwrap();
    assert_eq!(network.ip_address.as_deref(), Some("192.0.2.7"));
    assert_eq!(network.mac_address.as_deref(), Some("bc:24:11:00:00:07"));
}

fn answering(seed: SeedDelivery) -> More {
    let guest = GuestNetwork { addresses: vec!["192.0.2.7".to_owned()], mac: None };
    More { guest, seed: Some(seed), ..More::default() }
}

#[test]
fn the_image_goes_once_the_guest_has_an_address_and_what_fails_there_leaves_the_machine_ready() {
    let (claim, runs) = (started(), ours(Power::Running, true));
    let silent = More { guest: GuestNetwork::default(), ..answering(SeedDelivery::Iso) };
    assert_eq!(decided_with(&claim, &runs, 9, &silent).step, Step::AskGuest, "nobody has read it yet");
    let first = decided_with(&claim, &runs, 9, &answering(SeedDelivery::Iso));
    assert_eq!((first.step, first.status.phase), (Step::RemoveSeed, Some(ClaimPhase::Ready)));
    let kept = decided_with(&claim, &runs, 9, &More { keeps_image: true, ..answering(SeedDelivery::Iso) });
    assert_eq!((kept.step, kept.status.phase), (Step::Wait, Some(ClaimPhase::Ready)), "it is read at every boot");
    for class in [FailureClass::Transient, FailureClass::Configuration, FailureClass::Resource] {
        let more = More { failed: Some(failed(class, "a lock", 20)), ..answering(SeedDelivery::Iso) };
        let later = decided_with(&claim, &runs, 9, &more);
        assert_eq!(
            (later.step, later.status.phase, later.wake),
            (Step::Wait, Some(ClaimPhase::Ready), Some(at(20).monotonic))
        );
        let ready = later.status.conditions.iter().find(|found| found.r#type == "Ready").unwrap();
        assert!(ready.message.contains("still there: a lock"), "{}", ready.message);
        assert_eq!(decided_with(&claim, &runs, 20, &more).step, Step::RemoveSeed);
    }
    let gone = decided_with(&claim, &runs, 9, &More { is_seeded: true, ..answering(SeedDelivery::Iso) });
    assert_eq!((gone.step, gone.status.seeded_time.clone()), (Step::Wait, Some(time(9))));
    let after = Claim { status: gone.status, ..claim };
    assert_eq!(decided_with(&after, &runs, 30, &answering(SeedDelivery::Iso)).step, Step::Wait, "after a restart");
}

#[test]
fn a_machine_that_the_guest_agent_seeds_is_ready_when_cloud_init_has_ended() {
    let (claim, runs) = (started(), ours(Power::Running, true));
    let running = decided_with(&claim, &runs, 9, &answering(SeedDelivery::GuestAgent));
    assert_eq!((running.step, running.status.phase), (Step::Deliver, Some(ClaimPhase::Bootstrapping)));
    let done = More { is_seeded: true, ..answering(SeedDelivery::GuestAgent) };
    let done = decided_with(&claim, &runs, 9, &done);
    assert_eq!((done.step, done.status.phase), (Step::Wait, Some(ClaimPhase::Ready)));
    let late = decided_with(&claim, &runs, 2_000, &answering(SeedDelivery::GuestAgent));
    let ready = late.status.conditions.iter().find(|found| found.r#type == "Ready").unwrap();
    assert_eq!((ready.reason.as_str(), late.status.phase), ("BootTimeout", Some(ClaimPhase::Failed)));
    assert!(ready.message.contains("cloud-init has not ended"), "{}", ready.message);
}

/// One clone for each claim: what was created once is never created again.
#[test]
fn a_machine_that_was_seen_is_never_created_again() {
    let decision = decided(&started(), &absent(5), 9);
    assert_eq!((decision.step, decision.status.phase), (Step::Wait, Some(ClaimPhase::Failed)));
    let foreign = Sight::Foreign(at(5).monotonic);
    assert_eq!(decided(&started(), &foreign, 9).status.phase, Some(ClaimPhase::Failed));
    let more = More { ground: Some(Ground::At(vm("201", "a"))), ..More::default() };
    let moved = decided_with(&placed(), &foreign, 9, &more);
    let early = More { unresolved: 60, ..more };
    let waiting = decided_with(&placed(), &foreign, 9, &early);
    assert_eq!(waiting.status.vm_ref, Some(vm("200", "a")), "the first request may still arrive");
    assert_eq!(decided_with(&placed(), &foreign, 60, &early).step, Step::Inspect);
    assert_eq!(moved.step, Step::Wait, "another id is recorded before anything is created");
    assert_eq!(moved.status.vm_ref, Some(vm("201", "a")));
}

/// P7: the finalizer goes after the machine.
#[test]
fn the_finalizer_goes_only_when_the_machine_is_surely_gone() {
    let deleting = |claim: Claim| Claim { deleting: Some(at(10).wall), ..claim };
    let step = |sight: &Sight, now: u64, unresolved: u64| {
        decided_with(&deleting(started()), sight, now, &More { unresolved, ..More::default() }).step
    };
    assert_eq!(decided(&deleting(claim()), &absent(0), 11).step, Step::RemoveFinalizer, "never created");
    assert_eq!(step(&Sight::Unknown, 11, 0), Step::Inspect);
    assert_eq!(step(&ours(Power::Running, true), 11, 0), Step::Destroy);
    assert_eq!(step(&absent(11), 11, 0), Step::RemoveFinalizer);
    assert_eq!(step(&absent(11), 12, 60), Step::Wait, "a request may still be carried out");
    assert_eq!(step(&absent(11), 61, 60), Step::Inspect, "it was looked at too early");
    assert_eq!(step(&absent(61), 62, 60), Step::RemoveFinalizer);
    let busy = More { is_working: true, ..More::default() };
    let busy = decided_with(&deleting(started()), &absent(11), 11, &busy);
    assert_eq!(busy.step, Step::Wait, "an answer may still come");
}

/// P7 and P26: a machine that does not say any more whose it is is neither destroyed nor forgotten.
#[test]
fn a_machine_without_its_record_keeps_its_claim_and_is_looked_at_again() {
    let sight = |at_second: u64| Sight::Unrecorded {
        at: at(at_second).monotonic,
        power: Power::Running,
        record: "virtpilot-owner: {}".into(),
    };
    let mut claim = Claim { deleting: Some(at(10).wall), ..started() };
    let waits = decided(&claim, &sight(20), 49);
    let ready = waits.status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(
        (waits.step, waits.wake, ready.reason.as_str()),
        (Step::Wait, Some(at(50).monotonic), "OwnerRecordMissing")
    );
    assert_eq!(decided(&claim, &sight(20), 50).step, Step::Inspect);
    assert_eq!(decided(&claim, &sight(20), 50_000).step, Step::Inspect, "no deadline ends it");
    let later = More { failed: Some(failed(FailureClass::Transient, "no route", 70)), ..More::default() };
    let failing = decided_with(&claim, &sight(20), 60, &later);
    assert_eq!((failing.step, failing.status.phase), (Step::Wait, Some(ClaimPhase::Terminating)));
    claim.annotations = [(api::fleet::FORCE_DELETE.into(), "true".into())].into();
    assert_eq!(decided(&claim, &sight(20), 21).step, Step::RemoveFinalizer);
    let live = decided(&started(), &sight(20), 21);
    assert_eq!((live.step, live.status.phase), (Step::Wait, Some(ClaimPhase::Failed)));
}

#[test]
fn a_cleanup_that_is_stuck_says_how_to_force_it_and_force_works() {
    let mut claim = Claim { deleting: Some(at(10).wall), ..started() };
    let failed = failed(FailureClass::Transient, "no route", 5_000);
    let mut more = More { failed: Some(failed), ..More::default() };
    let reason = |more: &More, now: u64| {
        let status = decided_with(&claim, &ours(Power::Running, true), now, more).status;
        status.conditions.iter().find(|condition| condition.r#type == "VMCleanedUp").unwrap().reason.clone()
    };
    assert_eq!((reason(&more, 609), reason(&more, 610)), ("CleanupFailed".to_owned(), "CleanupStuck".to_owned()));
    more.cleanup = Some(Duration::from_secs(60));
    assert_eq!((reason(&more, 69), reason(&more, 70)), ("CleanupFailed".to_owned(), "CleanupStuck".to_owned()));
    let stuck = decided_with(&claim, &ours(Power::Running, true), 4_000, &more);
    let condition = stuck.status.conditions.iter().find(|condition| condition.r#type == "VMCleanedUp").unwrap();
    assert_eq!((stuck.step, condition.reason.as_str()), (Step::Wait, "CleanupStuck"));
    assert!(condition.message.contains("hyperfleet.io/force-delete"), "{}", condition.message);
    claim.annotations = [(api::fleet::FORCE_DELETE.into(), "true".into())].into();
    assert_eq!(decided(&claim, &ours(Power::Running, true), 20).step, Step::RemoveFinalizer);
}

/// P27, the pure part: a machine that has stopped ends with its claim.
#[test]
fn a_machine_that_has_stopped_ends_and_one_that_never_ran_is_started() {
    assert_eq!(decided(&started(), &ours(Power::Stopped, true), 9).step, Step::Delete(End::Stopped));
    assert_eq!(decided(&placed(), &ours(Power::Stopped, true), 9).step, Step::Start);
    let unknown = decided(&started(), &ours(Power::Unknown, true), 9);
    assert_eq!(unknown.step, Step::Wait, "a node that does not answer has not stopped its machines");
}

/// P10.
#[test]
fn a_machine_that_is_too_old_ends() {
    let mut claim = started();
    claim.spec.max_lifetime = Some(Span("10m".into()));
    let decision = decided(&claim, &ours(Power::Running, true), 601);
    assert_eq!(decision.wake.map(|wake| wake.elapsed().as_secs()), Some(602), "it is looked at again in time");
    assert_eq!(decided(&claim, &ours(Power::Running, true), 602).step, Step::Delete(End::TooOld));
    claim.spec = MachineClaimSpec { ttl: Some(Span("5m".into())), max_lifetime: None, ..claim.spec };
    assert_eq!(decided(&claim, &ours(Power::Running, true), 300).step, Step::Delete(End::Expired));
}

/// P8: a failure is retried later, and its condition says why.
#[test]
fn a_failure_is_retried_after_its_pause_and_shown() {
    let decision = |class, now| {
        let more = More { failed: Some(failed(class, "the storage is full", 50)), ..More::default() };
        let decision = decided_with(&placed(), &absent(0), now, &more);
        (decision.step, decision.status)
    };
    let (step, status) = decision(FailureClass::Resource, 40);
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!((step, ready.reason.as_str()), (Step::Wait, "InsufficientResources"));
    assert_eq!((ready.message.as_str(), status.attempts), ("the storage is full", 2));
    assert_eq!(decision(FailureClass::Resource, 50).0, Step::Create);
    let (step, status) = decision(FailureClass::Permanent, 50);
    assert_eq!((step, status.phase), (Step::Wait, Some(ClaimPhase::Failed)));
}

/// P1, the part of claims: a hypervisor that is not ready blocks what is new and nothing else.
#[test]
fn without_ground_nothing_is_created_and_a_ready_machine_stays_ready() {
    let ground = Ground::Waiting { reason: "ClusterNotReady", message: "not ready".into() };
    let more = More { ground: Some(ground), ..More::default() };
    let on = |claim: &Claim, sight: &Sight| decided_with(claim, sight, 9, &more);
    assert_eq!(on(&claim(), &absent(0)).status.phase, Some(ClaimPhase::Pending));
    assert_eq!(on(&placed(), &absent(0)).step, Step::Wait);
    let mut ready = started();
    ready.status.ready_time = Some(time(5));
    assert_eq!(on(&ready, &ours(Power::Running, true)).status.phase, Some(ClaimPhase::Ready));
}

#[test]
fn a_ready_machine_stays_ready_while_it_is_looked_at_after_a_restart() {
    let mut ready = started();
    ready.status.ready_time = Some(time(5));
    ready.status = decided(&ready, &ours(Power::Running, true), 9).status;
    let decision = decided(&ready, &Sight::Unknown, 20);
    assert_eq!((decision.step, &decision.status), (Step::Inspect, &ready.status));
}

/// Settling: the status that a decision leads to leads to itself.
#[test]
fn a_status_settles() {
    for sight in [Sight::Unknown, absent(0), ours(Power::Stopped, false), ours(Power::Running, true)] {
        let mut claim = placed();
        claim.status = decided(&claim, &sight, 9).status;
        assert_eq!(decided(&claim, &sight, 10).status, claim.status, "{sight:?}");
    }
}

#[test]
fn a_busy_machine_is_drained_only_when_it_is_idle() {
    let mut claim = started();
    claim.annotations = [api::fleet::DRAIN, api::fleet::BUSY].map(|key| (key.to_owned(), "true".to_owned())).into();
    let busy = decided(&claim, &ours(Power::Running, true), 9);
    assert_eq!((busy.step, busy.status.phase), (Step::Wait, Some(ClaimPhase::Draining)));
    assert_eq!(decided(&claim, &ours(Power::Stopped, true), 9).step, Step::Delete(End::Stopped));
    let unseen = decided(&claim, &Sight::Unknown, 9);
    assert_eq!((unseen.step, unseen.status.phase), (Step::Inspect, Some(ClaimPhase::Draining)));
    assert_eq!(decided(&claim, &absent(9), 9).status.phase, Some(ClaimPhase::Failed));
    claim.annotations.remove(api::fleet::BUSY);
    assert_eq!(decided(&claim, &ours(Power::Running, true), 9).step, Step::Delete(End::Drained));
}

#[test]
fn a_machine_that_does_not_boot_has_failed_after_its_timeout() {
    let decision = decided(&started(), &ours(Power::Running, true), 602);
    assert_eq!(decision.status.phase, Some(ClaimPhase::Failed));
    assert_eq!(decided(&started(), &ours(Power::Running, true), 601).status.phase, Some(ClaimPhase::Bootstrapping));
}

/// Theme 12: whatever ends a machine waits for its runner, unless a person has said how long a job may take.
#[test]
fn nothing_ends_a_machine_before_its_runner_is_gone() {
    use super::runner::Runner;
    use crate::jobs::runners::Why;
    let held =
        Runner { has_asked: true, held: Some("a job runs on it"), ended: None, failure: None, job_timeout: None };
    let with = |runner: Runner<'static>| More { runner: Some(runner), ..More::default() };
    let ends = |claim: &Claim, sight: &Sight, now: u64, runner: Runner<'static>| {
        let decision = decided_with(claim, sight, now, &with(runner));
        (decision.step, decision.status.phase)
    };
    let mut stopped = started();
    let waits = (Step::Wait, Some(ClaimPhase::Draining));
    assert_eq!(ends(&stopped, &ours(Power::Stopped, true), 9, held), waits, "its registration is left");
    let free = Runner { held: None, ended: Some(Why::JobDone), ..held };
    let deletes = |why: Why| (Step::Delete(End::Runner(why)), Some(ClaimPhase::Terminating));
    assert_eq!(ends(&started(), &ours(Power::Running, true), 9, free), deletes(Why::JobDone));
    let mut drained = started();
    drained.annotations.insert(api::fleet::DRAIN.into(), "true".into());
    assert_eq!(ends(&drained, &ours(Power::Running, true), 9, held), waits);
    let mut old = started();
    old.spec.max_lifetime = Some(Span("1h".into()));
    assert_eq!(ends(&old, &ours(Power::Running, true), 3_700, held), waits);
    let overtime = ends(&old, &ours(Power::Running, true), 4_300, held).0;
    assert_eq!(overtime, Step::Delete(End::TooOld), "its guest should have ended it ten minutes ago");
    stopped.deleting = Some(at(10).wall);
    let terminating = (Step::Wait, Some(ClaimPhase::Terminating));
    assert_eq!(ends(&stopped, &ours(Power::Running, true), 11, held), terminating);
    assert_eq!(ends(&stopped, &absent(11), 11, held), terminating, "the machine is gone, and its runner is not");
    let patient = Runner { job_timeout: Some(Duration::from_secs(60)), ..held };
    assert_eq!(ends(&stopped, &ours(Power::Running, true), 69, patient), terminating);
    assert_eq!(ends(&stopped, &ours(Power::Running, true), 70, patient).0, Step::Destroy);
    assert_eq!(ends(&stopped, &ours(Power::Running, true), 11, free).0, Step::Destroy);
    assert_eq!(ends(&stopped, &absent(11), 11, free).0, Step::RemoveFinalizer);
}

#[test]
fn a_machine_with_a_runner_is_ready_when_its_guest_has_asked_for_credentials() {
    use super::runner::Runner;
    let silent = Runner { has_asked: false, held: Some("looked for"), ended: None, failure: None, job_timeout: None };
    let guest = GuestNetwork { addresses: vec!["192.0.2.7".to_owned()], mac: None };
    let seen = |runner: Runner<'static>, now: u64| {
        let more =
            More { runner: Some(runner), guest: guest.clone(), seed: Some(SeedDelivery::Iso), ..More::default() };
        decided_with(&started(), &ours(Power::Running, true), now, &more)
    };
    let waits = seen(silent, 20);
    assert_eq!((waits.step, waits.status.phase), (Step::Wait, Some(ClaimPhase::Bootstrapping)));
    let failed = seen(silent, 602);
    assert_eq!(failed.status.phase, Some(ClaimPhase::Failed));
    let message = &failed.status.conditions.iter().find(|found| found.r#type == "Ready").unwrap().message;
    assert!(message.contains("virtpilot-guest has not asked"), "{message}");
    let ready = seen(Runner { has_asked: true, ..silent }, 20);
    assert_eq!(ready.status.phase, Some(ClaimPhase::Ready));
    assert_eq!(ready.step, Step::RemoveSeed, "the image with its token goes at once");
}

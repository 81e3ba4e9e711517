//! What the replicas of the model decide: ours as in production, the Go operator as client-go does.

use super::{GRACE, Lease, PodReport, Program, State};
use change::Moment;
use protocol::election::{Action, Candidate, Container, Pod, Record, Seen, Timing};
use std::time::Duration;

/// The times of our replicas; a unit is a millisecond.
const TIMING: Timing = Timing {
    duration: Duration::from_millis(60),
    deadline: Duration::from_millis(30),
    renew: Duration::ZERO,
    retry: Duration::ZERO,
    poll: Duration::ZERO,
    margin: Duration::from_millis(10),
};
/// The same for the Go operator: others wait for 15 s, and it leads for 10 s and 2 s after the answer to its last renewal.
const GO_DURATION: i16 = 30;
const GO_DEADLINE: i16 = 24;
/// controller-runtime waits no longer for an answer.
pub(super) const GO_TIMEOUT: i16 = 10;
/// The present moment of every clock; states are relative to it.
const NOW: i64 = 1000;

/// What can be left out, to see that it is needed.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// The server compares the version of a write with the lease's.
    pub(super) checks_version: bool,
    /// A report on a pod that is wrongly taken for a proof that it has ended.
    pub(super) trusts: Option<PodReport>,
    /// A lease is observed when it arrives, not when it is asked for.
    pub(super) observes_answers: bool,
    /// A shorter lease is waited for a little longer.
    pub(super) has_margin: bool,
    /// The Go operator waits for as long as the lease says, not for as long as it would say itself.
    pub(super) go_reads_duration: bool,
}

impl Rules {
    pub(super) const ALL: Rules =
        Rules { checks_version: true, trusts: None, observes_answers: true, has_margin: true, go_reads_duration: true };

    /// Lets a replica decide; whether it writes the lease.
    pub(super) fn decide(self, state: &mut State, index: usize, begun: i16) -> bool {
        match state.replicas[index].program {
            Program::Ours => self.decide_as_we_do(state, index, begun),
            Program::Go => self.decide_as_go_does(state, index, begun),
        }
    }

    /// How long a replica leads that has just learnt that its write was accepted.
    pub(super) fn held(program: Program, begun: i16) -> i16 {
        if program == Program::Go {
            return GO_DEADLINE;
        }
        let mut seen = Seen::default();
        candidate(0, true).held(&mut seen, past(begun));
        until(seen.leads_until.unwrap_or_default()).max(-GRACE)
    }

    fn decide_as_we_do(self, state: &mut State, index: usize, begun: i16) -> bool {
        let replica = &state.replicas[index];
        let is_new = replica.seen.is_none();
        let mut seen = Seen {
            version: replica.seen.map(|age| ("now".to_owned(), past(age))),
            leads_until: replica.leads.map(|left| past(-left)),
        };
        let action = candidate(index, self.has_margin).step(&self.record(state), &mut seen, past(0));
        let replica = &mut state.replicas[index];
        replica.seen = seen.version.map(|(_, since)| -until(since));
        if is_new && !self.observes_answers {
            replica.seen = replica.seen.map(|_| begun);
        }
        replica.leads = seen.leads_until.map(until);
        matches!(action, Action::Hold { .. })
    }

    fn record(self, state: &State) -> Record {
        let version = (state.lease != Lease::Missing).then(|| "now".to_owned());
        let Lease::Held(holder) = state.lease else { return Record { version, ..Record::default() } };
        let replica = &state.replicas[holder];
        let is_ours = replica.program == Program::Ours;
        Record {
            version,
            holder: Some(holder.to_string()),
            lasts: if is_ours { TIMING.duration } else { Duration::from_millis(GO_DURATION.unsigned_abs().into()) },
            pod_uid: is_ours.then(|| "uid".to_owned()),
            pod: is_ours.then(|| self.view(replica.pod)).flatten(),
        }
    }

    /// A pod as the API server reports it. The states of containers are the worst that may be: as if from before a restart.
    fn view(self, report: PodReport) -> Option<Pod> {
        let (is_final, container, is_abandoned) = match report {
            _ if self.trusts == Some(report) => (true, Container::Terminated, false),
            PodReport::Open => (false, Container::Terminated, false),
            PodReport::Ended => (true, Container::Terminated, false),
            PodReport::Absent => return None,
            PodReport::Abandoned => (true, Container::Terminated, true),
            PodReport::Lost => (true, Container::Lost, false),
        };
        Some(Pod { uid: "uid".into(), is_final, expected: 1, containers: vec![container], is_abandoned })
    }

    /// `tryAcquireOrRenew` of client-go.
    fn decide_as_go_does(self, state: &mut State, index: usize, begun: i16) -> bool {
        let lasts = match state.lease {
            Lease::Held(holder) if holder != index => match state.replicas[holder].program {
                Program::Ours if self.go_reads_duration => i16::try_from(TIMING.duration.as_millis()).unwrap(),
                _ => GO_DURATION,
            },
            _ => return true,
        };
        let age = *state.replicas[index].seen.get_or_insert(0);
        // The present is taken before the lease is read, and the observation after it.
        age - begun >= lasts
    }
}

fn candidate(index: usize, has_margin: bool) -> Candidate {
    let margin = if has_margin { TIMING.margin } else { Duration::ZERO };
    Candidate { name: index.to_string(), timing: Timing { margin, ..TIMING } }
}

/// The moment so long ago.
fn past(age: i16) -> Moment {
    Moment::since_start(Duration::from_millis(u64::try_from(NOW - i64::from(age)).unwrap()))
}

/// How long it is until a moment.
fn until(moment: Moment) -> i16 {
    i16::try_from(i64::try_from(moment.elapsed().as_millis()).unwrap() - NOW).unwrap()
}

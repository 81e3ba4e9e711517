//! Leader election: what a replica does about the lease, from what it has read and seen. A model checker runs the same function.

pub mod pod;

pub use pod::{Container, Pod};

use change::Moment;
use std::time::Duration;

/// The times of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait for a leader that does not renew.
    pub duration: Duration,
    /// How long a leader that cannot renew still writes: it stops well before another can take over.
    pub deadline: Duration,
    /// How often a leader renews.
    pub renew: Duration,
    /// How soon a failed renewal is tried again.
    pub retry: Duration,
    /// How often a waiting replica reads the lease.
    pub poll: Duration,
    /// How much longer to wait for a lease that is shorter than ours. Its holder is a client-go program, which counts its deadline from the
    /// answer to its last renewal: with 15 s, 10 s and 2 s it may lead for 17 s if that answer takes the 5 s that controller-runtime allows.
    pub margin: Duration,
}

impl Timing {
    /// The times of an operator.
    pub const OPERATOR: Timing = Timing {
        duration: Duration::from_secs(137),
        deadline: Duration::from_secs(107),
        renew: Duration::from_secs(26),
        retry: Duration::from_secs(2),
        poll: Duration::from_secs(1),
        margin: Duration::from_secs(5),
    };
}

/// The lease as it was read, and what is known of its holder's pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Its resourceVersion; `None` if there is no lease.
    pub version: Option<String>,
    /// Who holds it.
    pub holder: Option<String>,
    /// For how long after a renewal.
    pub lasts: Duration,
    /// The uid of the holder's pod, if the holder itself has published it.
    pub pod_uid: Option<String>,
    /// The last known state of the pod with the holder's name.
    pub pod: Option<Pod>,
}

/// What a replica has seen so far, by its own clock: the clocks of two machines need not agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The lease's resourceVersion, and when it was first read.
    pub version: Option<(String, Moment)>,
    /// Until when this replica leads, once it does.
    pub leads_until: Option<Moment>,
}

impl Seen {
    /// Whether this replica may act as the leader.
    pub fn leads(&self, now: Moment) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }
}

/// What to do about the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Hold the lease: replace exactly this version, or create it if there is none. [`Candidate::held`] follows a success.
    Hold {
        /// The resourceVersion that the server must still have.
        version: Option<String>,
        /// Why it may be taken.
        reason: Reason,
    },
    /// Another replica leads.
    Wait {
        /// Which.
        holder: String,
        /// When its lease ends if it does not renew.
        until: Moment,
    },
    /// Another replica leads although this one did: stop at once.
    StepDown {
        /// Which.
        holder: String,
    },
}

/// Why a replica may hold the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Nobody holds it.
    Free,
    /// It is held under this replica's own name: by itself, or by a process of the same pod that has ended.
    Own,
    /// Its holder has not renewed it in time.
    Expired,
    /// Its holder's pod has ended.
    HolderEnded,
}

/// A replica that wants to lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The pod's name. No two processes that run at the same time have the same one.
    pub name: String,
    /// Its times.
    pub timing: Timing,
}

impl Candidate {
    /// Decides about a lease whose content arrived at `now`.
    pub fn step(&self, record: &Record, seen: &mut Seen, now: Moment) -> Action {
        let hold = |reason| Action::Hold { version: record.version.clone(), reason };
        let (Some(version), Some(holder)) = (&record.version, &record.holder) else { return hold(Reason::Free) };
        if *holder == self.name {
            return hold(Reason::Own);
        }
        let since = match &seen.version {
            Some((before, since)) if before == version => *since,
            _ => now,
        };
        seen.version = Some((version.clone(), since));
        if seen.leads_until.take().is_some() {
            return Action::StepDown { holder: holder.clone() };
        }
        let is_ended = |pod: &Pod| record.pod_uid.as_ref().is_some_and(|uid| pod.has_ended(uid));
        if record.pod.as_ref().is_some_and(is_ended) {
            return hold(Reason::HolderEnded);
        }
        let until = since.after(self.patience(record.lasts));
        match now < until {
            true => Action::Wait { holder: holder.clone(), until },
            false => hold(Reason::Expired),
        }
    }

    /// The lease was written as `step` asked; the request for the step began at `begun`, which is before the renewal that others see.
    pub fn held(&self, seen: &mut Seen, begun: Moment) {
        seen.leads_until = Some(begun.after(self.timing.deadline));
    }

    /// The resourceVersion to replace in order to release the lease; nothing if another replica holds it. This replica stops leading.
    pub fn release(&self, record: &Record, seen: &mut Seen) -> Option<String> {
        seen.leads_until = None;
        record.version.clone().filter(|_| record.holder.as_ref() == Some(&self.name))
    }

    /// How long a holder whose lease is not seen to change is waited for.
    fn patience(&self, lasts: Duration) -> Duration {
        match lasts < self.timing.duration {
            true => lasts.saturating_add(self.timing.margin),
            false => lasts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Candidate, Container, Pod, Reason, Record, Seen, Timing};
    use change::Moment;
    use std::time::Duration;

    fn at(seconds: u64) -> Moment {
        Moment::since_start(Duration::from_secs(seconds))
    }

    fn record(version: &str, holder: &str, lasts: u64) -> Record {
        let holder = (!holder.is_empty()).then(|| holder.to_owned());
        Record { version: Some(version.into()), holder, lasts: Duration::from_secs(lasts), ..Record::default() }
    }

    fn us() -> Candidate {
        Candidate { name: "us".into(), timing: Timing::OPERATOR }
    }

    fn hold(version: &str, reason: Reason) -> Action {
        Action::Hold { version: Some(version.into()), reason }
    }

    fn wait(until: u64) -> Action {
        Action::Wait { holder: "other".into(), until: at(until) }
    }

    #[test]
    fn a_free_or_own_lease_is_held_at_once_and_only_in_the_version_that_was_read() {
        let mut seen = Seen::default();
        let created = us().step(&Record::default(), &mut seen, at(1));
        assert_eq!(created, Action::Hold { version: None, reason: Reason::Free });
        assert_eq!(us().step(&record("1", "", 137), &mut seen, at(1)), hold("1", Reason::Free));
        assert_eq!(us().step(&record("2", "us", 137), &mut seen, at(1)), hold("2", Reason::Own));
    }

    #[test]
    fn the_lease_of_another_is_taken_when_it_has_not_changed_for_its_duration_by_our_clock() {
        let mut seen = Seen::default();
        assert_eq!(us().step(&record("1", "other", 137), &mut seen, at(1000)), wait(1137));
        assert_eq!(us().step(&record("1", "other", 137), &mut seen, at(1100)), wait(1137));
        assert_eq!(us().step(&record("2", "other", 137), &mut seen, at(1130)), wait(1267), "it was renewed");
        assert_eq!(us().step(&record("2", "other", 137), &mut seen, at(1266)), wait(1267));
        assert_eq!(us().step(&record("2", "other", 137), &mut seen, at(1267)), hold("2", Reason::Expired));
    }

    #[test]
    fn a_shorter_lease_is_waited_for_a_little_longer() {
        let mut seen = Seen::default();
        assert_eq!(us().step(&record("1", "other", 15), &mut seen, at(0)), wait(20));
        assert_eq!(us().step(&record("1", "other", 15), &mut seen, at(20)), hold("1", Reason::Expired));
    }

    #[test]
    fn a_leader_leads_from_its_request_on_and_steps_down_when_it_reads_of_another() {
        let mut seen = Seen::default();
        us().held(&mut seen, at(10));
        assert!(seen.leads(at(116)) && !seen.leads(at(117)));
        assert_eq!(
            us().step(&record("9", "other", 137), &mut seen, at(50)),
            Action::StepDown { holder: "other".into() }
        );
        assert!(!seen.leads(at(50)));
        assert_eq!(
            us().step(&record("9", "other", 137), &mut seen, at(51)),
            wait(187),
            "it waits from the first sight"
        );
    }

    #[test]
    fn only_its_own_lease_is_released_and_leading_ends_in_any_case() {
        let mut seen = Seen::default();
        us().held(&mut seen, at(10));
        assert_eq!(us().release(&record("3", "us", 137), &mut seen), Some("3".into()));
        assert!(!seen.leads(at(10)));
        assert_eq!(us().release(&record("3", "other", 137), &mut seen), None);
        assert_eq!(us().release(&Record::default(), &mut seen), None);
    }

    #[test]
    fn the_lease_of_a_pod_that_has_ended_is_taken_at_once_if_it_is_the_pod_that_took_it() {
        let ended = Pod {
            uid: "u1".into(),
            is_final: true,
            expected: 1,
            containers: vec![Container::Terminated],
            is_abandoned: false,
        };
        let of = |uid: Option<&str>, pod: Option<Pod>| {
            let record = Record { pod_uid: uid.map(str::to_owned), pod, ..record("1", "other", 137) };
            us().step(&record, &mut Seen::default(), at(0))
        };
        assert_eq!(of(Some("u1"), Some(ended.clone())), hold("1", Reason::HolderEnded));
        assert_eq!(of(Some("u2"), Some(ended.clone())), wait(137), "another pod of that name");
        assert_eq!(of(None, Some(ended)), wait(137), "its holder does not say which pod it is");
        assert_eq!(of(Some("u1"), None), wait(137), "an absent pod may still run");
    }
}

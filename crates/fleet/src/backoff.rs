//! How long to wait after a failure, by its class.

use crate::hypervisor::Failure;
use api::fleet::FailureClass;
use change::Backoff;
use std::time::Duration;

/// A lock or a lost answer is over soon.
const TRANSIENT: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(120) };
/// A person needs minutes; what they change is noticed at once where it is watched.
const CONFIGURATION: Backoff = Backoff { first: Duration::from_secs(30), longest: Duration::from_secs(600) };
/// Machines end all the time.
const RESOURCE: Backoff = Backoff { first: Duration::from_secs(15), longest: Duration::from_secs(120) };
/// What is refused for ever is tried only where giving up would lose a machine.
const PERMANENT: Backoff = Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(600) };

/// The class of a failure.
pub fn class(failure: &Failure) -> FailureClass {
    match failure {
        Failure::Transient(_) | Failure::NoQuorum(_) | Failure::Exists(_) => FailureClass::Transient,
        Failure::Permanent(_) | Failure::Absent(_) | Failure::NotOurs { .. } => FailureClass::Permanent,
        Failure::Configuration { .. } | Failure::Hidden(_) => FailureClass::Configuration,
        Failure::Resource { .. } => FailureClass::Resource,
    }
}

/// What happened, and what to do.
pub fn message(failure: &Failure) -> String {
    match failure {
        Failure::Transient(message) | Failure::NoQuorum(message) | Failure::Permanent(message) => message.clone(),
        Failure::Configuration { message, remedy } | Failure::Resource { message, remedy } => {
            format!("{message}; {remedy}")
        }
        Failure::Exists(id) => format!("there is a machine {} already", id.0),
        Failure::Absent(id) => format!("there is no machine {}", id.0),
        Failure::Hidden(id) => format!(
            "machine {} exists, but the credentials may not see it; put it back into the resource pool, or grant VM.Audit on /vms/{}",
            id.0, id.0
        ),
        Failure::NotOurs { id, found: Some(owner) } => format!("machine {} belongs to {}", id.0, owner.claim),
        Failure::NotOurs { id, found: None } => format!("machine {} has no record of this installation", id.0),
    }
}

/// Whether a failure may concern a whole hypervisor: credentials, a privilege, or the quorum are gone.
pub fn may_be_of_cluster(failure: &Failure) -> bool {
    match failure {
        Failure::NoQuorum(_) | Failure::Configuration { .. } | Failure::Hidden(_) => true,
        Failure::Transient(_)
        | Failure::Permanent(_)
        | Failure::Resource { .. }
        | Failure::Exists(_)
        | Failure::Absent(_)
        | Failure::NotOurs { .. } => false,
    }
}

/// The pause after so many earlier failures in a row, up to a quarter longer. The jitter follows from the uid, so that claims that failed
/// together are not tried together again.
pub fn pause(class: FailureClass, failures: u32, uid: &str) -> Duration {
    let backoff = match class {
        FailureClass::Transient => TRANSIENT,
        FailureClass::Permanent => PERMANENT,
        FailureClass::Configuration => CONFIGURATION,
        FailureClass::Resource => RESOURCE,
    };
    let pause = backoff.pause(failures);
    let jitter = hash(uid, failures) % 256;
    pause + pause.mul_f64(f64::from(u32::try_from(jitter).unwrap_or_default()) / 1_024.0)
}

/// A number that follows from a text: FNV-1a.
pub(crate) fn hash(text: &str, more: u32) -> u64 {
    let bytes = text.bytes().chain(more.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::pause;
    use api::fleet::FailureClass;
    use std::time::Duration;

    const ALL: [FailureClass; 4] =
        [FailureClass::Transient, FailureClass::Permanent, FailureClass::Configuration, FailureClass::Resource];

    /// A part of P8.
    #[test]
    fn pauses_grow_up_to_a_cap_and_are_spread_by_the_uid() {
        for class in ALL {
            let mut last = Duration::ZERO;
            for failures in 0..40 {
                let next = pause(class, failures, "uid");
                assert!(next.mul_f64(1.3) >= last && next <= Duration::from_secs(750), "{class:?} {failures}");
                assert_eq!(next, pause(class, failures, "uid"), "it is the same each time");
                last = next;
            }
        }
        let spread: std::collections::BTreeSet<Duration> =
            (0..50).map(|number| pause(FailureClass::Transient, 3, &format!("uid-{number}"))).collect();
        assert!(spread.len() > 30, "{}", spread.len());
    }
}

//! Permission to write: nothing is written without a permit.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Permission to write. Only [`crate::lease`] and a command that a person typed make one.
#[derive(Debug, Clone)]
pub struct Permit(Validity);

#[derive(Debug, Clone)]
enum Validity {
    Always,
    /// Until this moment of [`uptime_millis`].
    Until(Arc<AtomicI64>),
}

impl Permit {
    /// For a command that a person typed; a controller must not call it.
    pub fn typed_command() -> Permit {
        Permit(Validity::Always)
    }

    /// For the only replica of a deployment.
    pub(crate) fn without_election() -> Permit {
        Permit(Validity::Always)
    }

    /// For a replica that is not the leader yet.
    pub(crate) fn not_yet_leader() -> Permit {
        Permit(Validity::Until(Arc::new(AtomicI64::new(i64::MIN))))
    }

    /// Extends a leader's permit to this long after a moment.
    pub(crate) fn extend(&self, from: i64, time: Duration) {
        if let Validity::Until(end) = &self.0 {
            end.store(from.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)), Ordering::SeqCst);
        }
    }

    /// Ends a leader's permit.
    pub(crate) fn end(&self) {
        if let Validity::Until(end) = &self.0 {
            end.store(i64::MIN, Ordering::SeqCst);
        }
    }

    /// Whether it is valid at this moment.
    pub fn is_valid(&self) -> bool {
        match &self.0 {
            Validity::Always => true,
            Validity::Until(end) => uptime_millis() < end.load(Ordering::SeqCst),
        }
    }
}

/// A clock that nobody can set and that also counts suspended time, so that a suspended leader does not believe it still leads.
pub(crate) fn uptime_millis() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::{Permit, uptime_millis};
    use std::time::Duration;

    #[test]
    fn a_leaders_permit_expires_by_itself() {
        let permit = Permit::not_yet_leader();
        assert!(!permit.is_valid(), "a candidate must not write");
        permit.extend(uptime_millis(), Duration::from_secs(60));
        assert!(permit.is_valid() && permit.clone().is_valid());
        permit.extend(uptime_millis() - 61_000, Duration::from_secs(60));
        assert!(!permit.is_valid());
        permit.extend(uptime_millis(), Duration::from_secs(60));
        permit.end();
        assert!(!permit.is_valid());
        assert!(Permit::without_election().is_valid());
    }
}

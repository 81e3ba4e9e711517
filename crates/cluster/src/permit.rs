//! Who may write. Nothing is written without one of these.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The right to write.
#[derive(Debug, Clone)]
pub struct Permit(Right);

#[derive(Debug, Clone)]
enum Right {
    Always,
    /// Until this moment of [`running_millis`].
    Until(Arc<AtomicI64>),
}

impl Permit {
    /// For the only process of a deployment, which needs no election.
    pub fn unopposed() -> Permit {
        Permit(Right::Always)
    }

    /// For a command that somebody typed.
    pub fn person() -> Permit {
        Permit(Right::Always)
    }

    /// For a leader that has yet to be elected.
    pub(crate) fn elected() -> Permit {
        Permit(Right::Until(Arc::new(AtomicI64::new(i64::MIN))))
    }

    /// Extends a leader's right to this long after a moment.
    pub(crate) fn extend(&self, from: i64, time: Duration) {
        if let Right::Until(end) = &self.0 {
            end.store(from.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)), Ordering::SeqCst);
        }
    }

    /// Ends a leader's right.
    pub(crate) fn end(&self) {
        if let Right::Until(end) = &self.0 {
            end.store(i64::MIN, Ordering::SeqCst);
        }
    }

    /// Whether it holds at this moment.
    pub fn holds(&self) -> bool {
        match &self.0 {
            Right::Always => true,
            Right::Until(end) => running_millis() < end.load(Ordering::SeqCst),
        }
    }
}

/// A clock that nobody sets and that counts the time a machine sleeps: a process that was stopped must not think itself young.
pub(crate) fn running_millis() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::{Permit, running_millis};
    use std::time::Duration;

    #[test]
    fn a_leaders_right_ends_by_itself() {
        let permit = Permit::elected();
        assert!(!permit.holds(), "nobody is born a leader");
        permit.extend(running_millis(), Duration::from_secs(60));
        assert!(permit.holds() && permit.clone().holds());
        permit.extend(running_millis() - 61_000, Duration::from_secs(60));
        assert!(!permit.holds());
        permit.extend(running_millis(), Duration::from_secs(60));
        permit.end();
        assert!(!permit.holds());
        assert!(Permit::unopposed().holds());
    }
}

//! Permission to write: nothing is written without a permit.

use change::Moment;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The lease of a leader ends later than its permit; less than that remains for the answer to its last request.
pub(crate) const GRACE: Duration = Duration::from_secs(28);

/// Permission to write. Only [`crate::lease`] and a command that a person typed make one.
#[derive(Debug, Clone)]
pub struct Permit(Validity);

#[derive(Debug, Clone)]
enum Validity {
    Always,
    /// Until this moment of [`uptime`], in milliseconds.
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

    /// Extends a leader's permit to a moment of [`uptime`].
    pub(crate) fn extend_to(&self, until: Moment) {
        if let Validity::Until(end) = &self.0 {
            end.store(millis(until), Ordering::SeqCst);
        }
    }

    /// Ends a leader's permit.
    pub(crate) fn end(&self) {
        if let Validity::Until(end) = &self.0 {
            end.store(i64::MIN, Ordering::SeqCst);
        }
    }

    /// How long a request may take that is sent now: another process may be the leader [`GRACE`] after the end. `None` if it is not valid.
    pub(crate) fn time_to_answer(&self) -> Option<Duration> {
        match &self.0 {
            Validity::Always => Some(Duration::MAX),
            Validity::Until(end) => {
                let left = end.load(Ordering::SeqCst).saturating_sub(millis(uptime()));
                let left = u64::try_from(left).ok().filter(|left| *left > 0)?;
                Some(Duration::from_millis(left).saturating_add(GRACE))
            }
        }
    }

    /// Whether it is valid at this moment.
    pub fn is_valid(&self) -> bool {
        match &self.0 {
            Validity::Always => true,
            Validity::Until(end) => millis(uptime()) < end.load(Ordering::SeqCst),
        }
    }
}

/// A clock that nobody can set and that also counts suspended time, so that a suspended leader does not believe it still leads. It counts
/// from the start of the machine.
pub(crate) fn uptime() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Moment::since_start(Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default()))
}

fn millis(moment: Moment) -> i64 {
    i64::try_from(moment.elapsed().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{GRACE, Permit, uptime};
    use change::Moment;
    use std::time::Duration;

    #[test]
    fn a_leaders_permit_expires_by_itself() {
        let minute = Duration::from_secs(60);
        let permit = Permit::not_yet_leader();
        assert!(!permit.is_valid(), "a candidate must not write");
        permit.extend_to(uptime().after(minute));
        assert!(permit.is_valid() && permit.clone().is_valid());
        let time = permit.time_to_answer().unwrap();
        assert!(time > GRACE && time <= GRACE + minute, "{time:?}");
        permit.extend_to(Moment::since_start(uptime().elapsed() - Duration::from_secs(1)));
        assert!(!permit.is_valid() && permit.time_to_answer().is_none());
        permit.extend_to(uptime().after(minute));
        permit.end();
        assert!(!permit.is_valid());
        assert!(permit.time_to_answer().is_none());
        assert!(Permit::without_election().is_valid());
    }
}

//! The writes of one object: the one in flight, failures, and when the next attempt may be made.

use crate::budget::Budget;
use crate::decision::PendingWrite;
use crate::notice::ObjectNotice;
use change::{Backoff, Digest, Moment, Reason};
use std::time::Duration;

/// After a write that failed without an answer.
const RETRY: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(300) };
/// After a write that the server refused: only a change elsewhere can help.
const RETRY_REFUSED: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(300) };
/// More unanswered applies are not remembered: the watch has reported the older ones by then.
const MOST_UNANSWERED: usize = 8;

/// Its writes: the one in flight, and what is known of those before.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The write in flight. Whatever happens meanwhile is decided about afterwards.
    pub(crate) pending: Option<Pending>,
    /// What became of the approval of the last approved write.
    pub(crate) approval: ApprovalUse,
    pub(crate) repair: Repair,
    /// What to report once a later step has succeeded.
    pub(crate) deferred_notice: Option<ObjectNotice>,
    /// The budget of recreations of which it is recorded that the next write spends some.
    pub(crate) spent: Option<Budget>,
    /// The digest of the last write that failed.
    pub(crate) failed: Option<Digest>,
    /// The last applies without an answer: the budget that each wrote, if it was made, and what to report then.
    pub(crate) unanswered: Vec<(Budget, Option<ObjectNotice>)>,
    pub(crate) failures: u32,
    /// Why the last attempts have failed, if that was reported.
    pub(crate) reported: Option<Reason>,
    /// Nothing is written before this.
    pub(crate) not_before: Option<Moment>,
    /// The last dry run.
    pub(crate) preview: Option<Preview>,
}

/// A dry run.
#[derive(Debug)]
pub(crate) struct Preview {
    /// What was tried.
    pub(crate) digest: Digest,
    /// The message of a server that refused it.
    pub(crate) refused: Option<String>,
}

/// A write in flight.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) write: PendingWrite,
    /// What to report when it succeeds.
    pub(crate) notice: Option<ObjectNotice>,
    /// If it uses up a person's approval, how many were used before it.
    pub(crate) approval: Option<u32>,
    /// The version that it was decided for; an answer with the same version means that nothing has changed.
    pub(crate) version: Option<String>,
}

/// What became of a person's approval. It is counted as used before its write is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ApprovalUse {
    /// There was none, or it is used.
    #[default]
    None,
    /// Its write was not made, and may be tried again; how many approvals were used before it.
    Unused(u32),
    /// The same, but a write had no answer, and may have been made.
    InDoubt(u32),
}

impl ApprovalUse {
    /// How many approvals were used before the one that may be tried again.
    pub(crate) fn unused(self) -> Option<u32> {
        match self {
            ApprovalUse::None => None,
            ApprovalUse::Unused(before) | ApprovalUse::InDoubt(before) => Some(before),
        }
    }
}

/// The repair of a list whose key somebody changed, before an apply can succeed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Repair {
    /// None is needed, as far as is known.
    #[default]
    None,
    /// The next write is one.
    Due,
    /// It was made, and the apply after it is not answered yet.
    Done {
        /// What was approved with it.
        digest: Digest,
    },
}

impl Writes {
    /// Why the last attempts have failed, while no attempt has succeeded.
    pub(crate) fn still_failing(&self) -> Option<&Reason> {
        self.reported.as_ref()
    }

    /// The last attempt has succeeded, or the next one is about something else.
    pub(crate) fn forget_failures(&mut self) {
        (self.failures, self.reported) = (0, None);
    }

    /// The server's message, if it refused this in a dry run.
    pub(crate) fn refused_preview(&self, digest: &Digest) -> Option<&str> {
        self.preview.as_ref().filter(|preview| preview.digest == *digest)?.refused.as_deref()
    }

    /// Remembers an apply without an answer, unless it repeats one.
    pub(crate) fn add_unanswered(&mut self, budget: Budget, notice: Option<ObjectNotice>) {
        if self.unanswered.iter().all(|(earlier, _)| *earlier != budget) {
            self.unanswered.push((budget, notice));
        }
        if self.unanswered.len() > MOST_UNANSWERED {
            self.unanswered.remove(0);
        }
    }

    /// The pause after another failure.
    pub(crate) fn fail(&mut self, is_refusal: bool) -> Duration {
        let backoff = if is_refusal { RETRY_REFUSED } else { RETRY };
        let pause = backoff.pause(self.failures);
        self.failures += 1;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_UNANSWERED, Writes};
    use crate::budget::Budget;
    use jiff::Timestamp;
    use std::time::Duration;

    #[test]
    fn the_last_applies_without_an_answer_are_remembered_each_once() {
        let budgets: Vec<Budget> =
            (0..).map_while(|second| Timestamp::from_second(second).ok()).map(Budget::full).take(9).collect();
        let remembered = |budgets: &[Budget]| {
            let mut writes = Writes::default();
            budgets.iter().for_each(|budget| writes.add_unanswered(*budget, None));
            writes.unanswered.iter().map(|(budget, _)| *budget).collect::<Vec<_>>()
        };
        assert_eq!(remembered(&[budgets[0], budgets[1], budgets[0]]), budgets[..2]);
        assert_eq!(remembered(&budgets[..MOST_UNANSWERED]), budgets[..MOST_UNANSWERED]);
        assert_eq!(remembered(&budgets[..=MOST_UNANSWERED]), budgets[1..=MOST_UNANSWERED]);
    }

    #[test]
    fn an_object_the_server_refuses_costs_few_requests_in_its_first_minute() {
        for refused in [true, false] {
            let mut writes = Writes::default();
            let (mut passed, mut tries) = (Duration::ZERO, 1);
            while passed < Duration::from_secs(60) {
                passed += writes.fail(refused);
                tries += 1;
            }
            assert!(tries <= 10, "{tries}");
        }
    }
}

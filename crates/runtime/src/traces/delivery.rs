//! What follows from an attempt to deliver spans: the next attempt, and what is logged about it.

use cluster::Failure;
use cluster::other_server::Answer;
use std::time::Duration;

/// So many attempts are made for one delivery.
const ATTEMPTS: u32 = 4;
/// The pause after the first attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// A collector that asks for more patience gets less.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What to do after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Done,
    RetryAfter(Duration),
    GiveUp(String),
}

/// What follows from an attempt; the first has the number 0. Only what may be different next time is tried again.
pub(crate) fn after(attempt: u32, outcome: &Result<Answer, Failure>) -> Next {
    let (why, asked) = match outcome {
        Ok(Answer { code: 200..300, .. }) => return Next::Done,
        Ok(Answer { code: code @ (429 | 502 | 503 | 504), retry_after }) => {
            (format!("it answers {code}"), *retry_after)
        }
        Ok(Answer { code: 404, .. }) => {
            return Next::GiveUp("it answers 404; is it OTLP over HTTP, on port 4318?".into());
        }
        Ok(Answer { code, .. }) => return Next::GiveUp(format!("it answers {code}")),
        Err(failure) => (failure.to_string(), None),
    };
    if attempt + 1 >= ATTEMPTS {
        return Next::GiveUp(why);
    }
    let pause = asked.unwrap_or(FIRST_PAUSE.saturating_mul(1 << attempt));
    Next::RetryAfter(pause.min(LONGEST_PAUSE))
}

/// Whether traces arrive, and how many spans were lost while they did not.
#[derive(Debug, Default)]
pub(crate) struct Health {
    is_failing: bool,
    lost: u64,
}

/// What is logged about the health.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Failing(String),
    Recovered { lost: u64 },
}

impl Health {
    /// Takes the outcome of a delivery and how many spans were lost since the last one; a failure is reported once until it is over.
    pub(crate) fn after(&mut self, outcome: Result<(), String>, lost: u64) -> Option<Report> {
        self.lost += lost;
        let failure = outcome.err().or_else(|| (lost > 0).then(|| "spans end faster than it takes them".to_owned()));
        match (std::mem::replace(&mut self.is_failing, failure.is_some()), failure) {
            (false, Some(why)) => Some(Report::Failing(why)),
            (true, None) => Some(Report::Recovered { lost: std::mem::take(&mut self.lost) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Health, Next, Report, after};
    use cluster::Failure;
    use cluster::other_server::Answer;
    use std::time::Duration;

    #[test]
    fn only_what_may_be_different_next_time_is_tried_again() {
        let answered = |attempt, code, seconds: Option<u64>| {
            after(attempt, &Ok(Answer { code, retry_after: seconds.map(Duration::from_secs) }))
        };
        let wait = |seconds| Next::RetryAfter(Duration::from_secs(seconds));
        assert_eq!(answered(0, 200, None), Next::Done);
        assert_eq!(answered(0, 202, None), Next::Done);
        for code in [429, 502, 503, 504] {
            assert_eq!((answered(0, code, None), answered(2, code, None)), (wait(1), wait(4)), "{code}");
            assert_eq!((answered(1, code, Some(7)), answered(1, code, Some(600))), (wait(7), wait(30)), "{code}");
            assert_eq!(answered(3, code, Some(7)), Next::GiveUp(format!("it answers {code}")));
        }
        assert_eq!(answered(0, 400, Some(7)), Next::GiveUp("it answers 400".into()));
        assert!(matches!(answered(0, 404, None), Next::GiveUp(why) if why.contains("4318")));
        let unanswered = Err(Failure::Unanswered("no route".into()));
        assert_eq!((after(0, &unanswered), after(3, &unanswered)), (wait(1), Next::GiveUp("no route".into())));
    }

    #[test]
    fn a_failure_is_reported_once_until_it_is_over() {
        let mut health = Health::default();
        assert_eq!(health.after(Ok(()), 0), None);
        assert_eq!(health.after(Err("down".into()), 3), Some(Report::Failing("down".into())));
        assert_eq!(health.after(Err("still down".into()), 4), None);
        assert_eq!(health.after(Ok(()), 0), Some(Report::Recovered { lost: 7 }));
        assert_eq!(health.after(Ok(()), 0), None);
        assert!(matches!(health.after(Ok(()), 2), Some(Report::Failing(_))), "the queue was full");
        assert_eq!(health.after(Ok(()), 0), Some(Report::Recovered { lost: 2 }));
    }
}

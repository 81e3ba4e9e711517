//! Whether a host is asked at all: after failures in a row it is left alone for a while, and then asked by one request.

use jiff::Timestamp;
use std::time::Duration;

/// So many failures in a row are no coincidence.
const FAILURES: u32 = 5;
/// The first pause, which doubles with each failure after it.
const FIRST: Duration = Duration::from_secs(5);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(300);

/// What is known of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    /// Not asked before this moment.
    closed_until: Option<Timestamp>,
    /// Whether one request finds out if the host answers again.
    is_probing: bool,
}

impl Breaker {
    /// Whether the host may be asked now; when it may otherwise. Who may has to report how it ended.
    pub fn admit(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        match self.closed_until {
            None => Ok(()),
            Some(until) if now < until => Err(until),
            // The end of the probe is not known: a second is as good as any.
            Some(_) if self.is_probing => Err(now + Duration::from_secs(1)),
            Some(_) => {
                self.is_probing = true;
                Ok(())
            }
        }
    }

    /// The host answered, whatever it said.
    pub fn answered(&mut self) {
        *self = Breaker::default();
    }

    /// The host did not answer, or said that it cannot.
    pub fn failed(&mut self, now: Timestamp) {
        self.is_probing = false;
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            let doubled = FIRST.saturating_mul(1_u32 << (self.failures - FAILURES).min(10));
            self.closed_until = Some(now + doubled.min(LONGEST));
        }
    }

    /// A request that was admitted was never sent.
    pub fn cancelled(&mut self) {
        self.is_probing = false;
    }
}

#[cfg(test)]
mod tests {
    use super::Breaker;
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    #[test]
    fn a_host_that_fails_is_left_alone_for_longer_and_longer() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(at(0));
            assert_eq!(breaker.admit(at(0)), Ok(()));
        }
        breaker.failed(at(0));
        assert_eq!((breaker.admit(at(0)), breaker.admit(at(4))), (Err(at(5)), Err(at(5))));
        assert_eq!(breaker.admit(at(5)), Ok(()));
        assert_eq!(breaker.admit(at(5)), Err(at(6)), "one finds out for all");
        breaker.failed(at(6));
        assert_eq!(breaker.admit(at(15)), Err(at(16)), "twice as long");
        for _ in 0..40 {
            breaker.failed(at(20));
        }
        assert_eq!(breaker.admit(at(20)), Err(at(320)), "never longer than five minutes");
        assert_eq!(breaker.admit(at(320)), Ok(()));
        breaker.cancelled();
        assert_eq!(breaker.admit(at(320)), Ok(()), "one that was not sent finds out nothing");
        breaker.answered();
        assert_eq!((breaker.admit(at(320)), breaker.admit(at(320))), (Ok(()), Ok(())));
    }

    #[test]
    fn one_answer_in_between_is_enough() {
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            for _ in 0..4 {
                breaker.failed(at(0));
            }
            breaker.answered();
        }
        assert_eq!(breaker.admit(at(0)), Ok(()));
    }
}

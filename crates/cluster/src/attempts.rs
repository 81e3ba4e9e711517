//! Waits between the attempts at one thing.

use change::Backoff;
use std::time::Duration;

/// The attempts at one thing, with growing pauses between them.
#[derive(Debug, Clone)]
pub struct Attempts {
    backoff: Backoff,
    failures: u32,
}

impl Attempts {
    /// No attempt has failed yet.
    pub const fn with(backoff: Backoff) -> Attempts {
        Attempts { backoff, failures: 0 }
    }

    /// How long to wait before the next attempt; the wait after it is twice as long.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.backoff.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Waits before the next attempt.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_wait()).await;
    }

    /// Whether every further wait is the longest one.
    pub fn is_longest(&self) -> bool {
        self.backoff.pause(self.failures) >= self.backoff.longest
    }

    /// Starts again with the first wait, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Attempts;
    use change::Backoff;
    use std::time::Duration;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_reset() {
        let backoff = Backoff { first: Duration::from_millis(30), longest: Duration::from_millis(100) };
        let mut attempts = Attempts::with(backoff);
        let waits: Vec<u128> = (0..4).map(|_| attempts.next_wait().as_millis()).collect();
        assert_eq!(waits, [30, 60, 100, 100]);
        assert!(attempts.is_longest());
        attempts.reset();
        assert!(!attempts.is_longest());
        assert_eq!(attempts.next_wait().as_millis(), 30);
    }
}

//! Waits between attempts that double up to a limit.

use std::time::Duration;

/// The waits of one thing that is tried again and again.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// The first wait and the longest one.
    pub const fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest, next: first }
    }

    /// How long to wait before the next attempt; the wait after it is twice as long.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.longest);
        wait
    }

    /// Waits before the next attempt.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_wait()).await;
    }

    /// Whether every further wait is the longest one.
    pub fn is_longest(&self) -> bool {
        self.next >= self.longest
    }

    /// Starts again with the first wait, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use std::time::Duration;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_reset() {
        let mut backoff = Backoff::new(Duration::from_millis(30), Duration::from_millis(100));
        let waits: Vec<u128> = (0..4).map(|_| backoff.next_wait().as_millis()).collect();
        assert_eq!(waits, [30, 60, 100, 100]);
        assert!(backoff.is_longest());
        backoff.reset();
        assert!(!backoff.is_longest());
        assert_eq!(backoff.next_wait().as_millis(), 30);
    }
}

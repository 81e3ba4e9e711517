//! How long to wait before the next attempt.

use std::time::Duration;

/// Pauses that double with every failure, up to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many earlier failures.
    pub fn pause(&self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(16)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use std::time::Duration;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_millis(30), longest: Duration::from_secs(5) };
        let pauses: Vec<u128> =
            [0, 1, 2, 7, 8, 60].iter().map(|failures| backoff.pause(*failures).as_millis()).collect();
        assert_eq!(pauses, [30, 60, 120, 3840, 5000, 5000]);
    }
}

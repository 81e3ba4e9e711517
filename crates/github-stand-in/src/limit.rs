//! The budget of a client: requests per hour, and points per minute.

use crate::request::Method;
use crate::response::Refusal;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const PRIMARY: &str = "rest/overview/rate-limits-for-the-rest-api";
const SECONDARY: &str = "rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits";

/// How much a client may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in a window.
    pub core: u64,
    /// The window.
    pub window: Duration,
    /// Points in a minute; a read costs one and everything else five.
    pub points: u64,
    /// The code of a refusal by the secondary limit: 403 or 429.
    pub secondary_status: u16,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { core: 5000, window: Duration::from_secs(3600), points: 900, secondary_status: 403 }
    }
}

/// What a client has asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Budget {
    window: Duration,
    pub(crate) used: u64,
    minute: Duration,
    points: u64,
}

impl Budget {
    /// Starts new windows if the old ones are over.
    pub(crate) fn roll(&mut self, limits: &Limits, now: Duration) {
        if now >= self.window + limits.window {
            *self = Budget { window: now, used: 0, ..*self };
        }
        if now >= self.minute + MINUTE {
            *self = Budget { minute: now, points: 0, ..*self };
        }
    }

    /// Charges a request, or says why it is refused. `who` is as GitHub names it: `installation ID 1` or `user ID 1`.
    pub(crate) fn charge(&mut self, limits: &Limits, method: Method, who: &str, now: Duration) -> Result<(), Refusal> {
        self.roll(limits, now);
        if self.used >= limits.core {
            let text = format!(
                "API rate limit exceeded for {who}. If you reach out to GitHub Support for help, please include the request ID."
            );
            return Err(Refusal::new(403, text).documented(PRIMARY));
        }
        let points = if method == Method::Get { 1 } else { 5 };
        if self.points + points > limits.points {
            let seconds = (self.minute + MINUTE).saturating_sub(now).as_secs_f64().ceil();
            return Err(secondary(limits.secondary_status, seconds.to_string()));
        }
        self.points += points;
        self.used += 1;
        Ok(())
    }

    /// Gives back what an answer without content costs: nothing.
    pub(crate) fn refund(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    /// Uses up what is left until the window ends.
    pub(crate) fn exhaust(&mut self, limits: &Limits, now: Duration) {
        self.roll(limits, now);
        self.used = limits.core;
    }

    /// When the window ends.
    pub(crate) fn reset(&self, limits: &Limits) -> Duration {
        self.window + limits.window
    }
}

/// A refusal by the secondary limit.
pub(crate) fn secondary(status: u16, seconds: String) -> Refusal {
    let text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub \
                Support for help, please include the request ID.";
    Refusal::new(status, text).documented(SECONDARY).with_header("retry-after", seconds)
}

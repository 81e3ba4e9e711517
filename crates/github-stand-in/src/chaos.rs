//! What goes wrong with webhooks: one by one, or by chance.

use crate::random::Random;
use std::time::Duration;

/// What happens to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEffect {
    /// It is never received; the list of deliveries shows a failure.
    Lose,
    /// It is never made; the list of deliveries does not show it.
    Forget,
    /// It is sent so much later.
    Delay(Duration),
    /// It is sent twice, with the same delivery id.
    Duplicate,
    /// It is sent after the next one of its hook, or two seconds later if there is none.
    Swap,
}

/// A fault and the webhooks that it happens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFault {
    /// The action of the event, such as `queued`, or any.
    pub action: Option<String>,
    /// How many matching webhooks pass before.
    pub skip: u32,
    /// To how many webhooks it happens.
    pub times: u32,
    /// What happens.
    pub effect: WebhookEffect,
}

impl WebhookFault {
    /// Happens to the next webhook with this action.
    pub fn once(action: &str, effect: WebhookEffect) -> WebhookFault {
        WebhookFault { action: Some(action.to_owned()), skip: 0, times: 1, effect }
    }

    /// Happens so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> WebhookFault {
        self.times = times;
        self
    }
}

/// What happens to webhooks by chance, in percent; the rest is sent in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebhookChaos {
    /// Lost, and shown as failed.
    pub lost: u64,
    /// Never made.
    pub forgotten: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Sent late.
    pub late: u64,
    /// By how much.
    pub late_by: Duration,
}

impl WebhookChaos {
    pub(crate) fn draw(&self, random: &mut Random) -> Option<WebhookEffect> {
        if *self == WebhookChaos::default() {
            return None;
        }
        let mut drawn = random.percent();
        for (chance, effect) in [
            (self.lost, WebhookEffect::Lose),
            (self.forgotten, WebhookEffect::Forget),
            (self.duplicated, WebhookEffect::Duplicate),
            (self.late, WebhookEffect::Delay(self.late_by)),
        ] {
            if drawn < chance {
                return Some(effect);
            }
            drawn -= chance;
        }
        None
    }
}

/// The first fault for a webhook with this action.
pub(crate) fn take(faults: &mut Vec<WebhookFault>, action: &str) -> Option<WebhookEffect> {
    let is_wanted = |fault: &WebhookFault| fault.action.as_ref().is_none_or(|wanted| wanted == action);
    let at = faults.iter().position(is_wanted)?;
    let fault = &mut faults[at];
    if fault.skip > 0 {
        fault.skip -= 1;
        return None;
    }
    let effect = fault.effect;
    fault.times = fault.times.saturating_sub(1);
    if fault.times == 0 {
        faults.remove(at);
    }
    Some(effect)
}

//! Which hooks are told of an event, when, and what goes wrong with it.

mod payload;

pub(crate) use payload::{job_json, repository_json, run_json, user_json};

use crate::chaos::{self, WebhookEffect};
use crate::happening::Happening;
use crate::hook::{Delivery, DeliveryRecord, Hook};
use crate::stand_in::StandIn;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a webhook is held back for the next one.
const HOLD_BACK: Duration = Duration::from_secs(2);

impl StandIn {
    /// Tells all hooks of a job.
    pub(crate) fn emit(&mut self, job: u64, action: &'static str, now: Duration) {
        let Some(job) = self.jobs.get(&job).cloned() else { return };
        let wanted = |hook: &&Hook| {
            let is_subscribed = hook.events.iter().any(|event| event == "workflow_job" || event == "*");
            hook.is_active
                && is_subscribed
                && hook.scope.as_ref().unwrap_or(&self.installed_in).covers(&job.spec.repository)
        };
        let hooks: Vec<Hook> = self.hooks.values().filter(wanted).cloned().collect();
        for hook in hooks {
            let payload = payload::workflow_job(self, &job, action, hook.scope.is_none());
            let fault = chaos::take(&mut self.webhook_faults, action);
            let effect = match fault {
                Some(effect) => Some(effect),
                None => self.chaos.draw(&mut self.random),
            };
            self.post(&hook, "workflow_job", Some(action), payload, effect, now);
        }
    }

    /// Makes a delivery of an event to a hook.
    pub(crate) fn post(
        &mut self,
        hook: &Hook,
        event: &str,
        action: Option<&str>,
        payload: Value,
        effect: Option<WebhookEffect>,
        now: Duration,
    ) {
        let (id, guid) = (self.number("delivery", 12_000_000_001), self.random.uuid());
        let at = now + self.timing.webhook;
        let record = DeliveryRecord {
            id,
            guid,
            hook: hook.id,
            at,
            event: event.to_owned(),
            action: action.map(str::to_owned),
            status: None,
            is_done: effect == Some(WebhookEffect::Lose),
            is_redelivery: false,
            payload,
        };
        let delivery = hook.deliver(&record);
        if effect != Some(WebhookEffect::Forget) {
            self.deliveries.insert(id, record);
        }
        match effect {
            Some(WebhookEffect::Lose | WebhookEffect::Forget) => {}
            Some(WebhookEffect::Delay(time)) => self.send_at(at + time, delivery),
            Some(WebhookEffect::Duplicate) => {
                self.send_at(at, delivery.clone());
                self.send_at(at, delivery);
            }
            Some(WebhookEffect::Swap) => {
                self.held_back.push(delivery.clone());
                // Whichever comes first sends it: the next webhook, or this.
                self.send_at(at + HOLD_BACK, delivery);
            }
            None => {
                self.send_at(at, delivery);
                let is_of_hook = |held: &Delivery| held.hook == hook.id;
                let freed: Vec<Delivery> = self.held_back.iter().filter(|held| is_of_hook(held)).cloned().collect();
                self.held_back.retain(|held| !is_of_hook(held));
                for held in freed {
                    self.unschedule_delivery(held.id);
                    self.send_at(at, held);
                }
            }
        }
    }

    fn send_at(&mut self, at: Duration, delivery: Delivery) {
        self.schedule(at, Happening::Send(Box::new(delivery)));
    }

    /// Sends a delivery once more, with the id of the event and a new id of its own.
    pub(crate) fn redeliver(&mut self, id: u64) -> bool {
        let Some(mut record) = self.deliveries.get(&id).cloned() else { return false };
        let Some(hook) = self.hooks.get(&record.hook).cloned() else { return false };
        record.id = self.number("delivery", 12_000_000_001);
        record.at = self.now + self.timing.webhook;
        record.is_redelivery = true;
        record.status = None;
        record.is_done = false;
        let delivery = hook.deliver(&record);
        self.send_at(record.at, delivery);
        self.deliveries.insert(record.id, record);
        true
    }

    /// The event that a hook gets when it is made.
    pub(crate) fn ping(&mut self, hook: &Hook) {
        let payload = json!({
            "zen": "Anything added dilutes everything else.",
            "hook_id": hook.id,
            "hook": hook.json(self),
            "sender": user_json(self, "octocat", "User"),
        });
        self.post(hook, "ping", None, payload, None, self.now);
    }
}

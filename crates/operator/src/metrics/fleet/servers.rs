//! What arrived at the fleet's two servers, and what became of it.

use crate::fleet::servers::WEBHOOK;
use crate::metrics::register;
use api::metric;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Webhook {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfGuest {
    request: &'static str,
    result: &'static str,
}

/// The counts.
pub(super) struct Servers {
    webhooks: Family<Webhook, Counter>,
    guests: Family<OfGuest, Counter>,
}

impl Servers {
    pub(super) fn register(registry: &mut Registry) -> Servers {
        let webhooks = Family::<Webhook, Counter>::default();
        // A rate needs a count from before the first one.
        for result in ["accepted", "wrong_signature", "not_leading"] {
            webhooks.get_or_create_owned(&Webhook { result });
        }
        Servers {
            webhooks: register(registry, &metric::FLEET_WEBHOOKS, webhooks),
            guests: register(registry, &metric::FLEET_BOOTSTRAP_REQUESTS, Family::default()),
        }
    }

    /// A request that a server had; both words are of a closed set, whoever sends what.
    pub(super) fn count(&self, server: &'static str, result: &'static str) {
        match server {
            WEBHOOK => self.webhooks.get_or_create_owned(&Webhook { result }).inc(),
            request => self.guests.get_or_create_owned(&OfGuest { request, result }).inc(),
        };
    }
}

//! Webhooks that did not arrive: which one reaches the fleet, and having its failed deliveries made again.

use super::forges::{Call, ForgeAnswer};
use super::{Core, Due};
use crate::forge::{self, Failure, Hook};
use crate::jobs::redelivery::Redelivery;
use crate::jobs::settings::Settings;
use crate::notice::Notice;
use crate::object::Name;
use api::fleet::JobSource;
use change::Moment;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the webhook is looked for again: somebody may have changed it, or granted a permission.
const FIND: Duration = Duration::from_secs(3_600);
/// Deliveries that no request is left for wait at least so long.
const AGAIN: Duration = Duration::from_secs(5);

/// A webhook: the server, whose it is, and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Receiver {
    api: String,
    of: String,
    hook: Hook,
}

/// The search for the webhook of a pool.
#[derive(Debug, Default)]
pub(super) struct Search {
    is_asking: bool,
    next: Moment,
    /// What was found, or why nothing could be; nothing before the first answer.
    found: Option<Result<Option<Hook>, String>>,
}

impl Search {
    /// What people should know of it, after a sentence about the connection.
    pub(super) fn message(&self, settings: &Settings) -> String {
        match &self.found {
            _ if !expects(settings) => String::new(),
            None => String::new(),
            Some(Ok(Some(_))) => "; webhooks that could not be delivered are delivered again".to_owned(),
            Some(Ok(None)) => {
                "; webhooks that could not be delivered are not delivered again, because no webhook is sent to \
                               webhookAddress or, of an App, to an address that ends with /webhooks/github"
                    .to_owned()
            }
            Some(Err(why)) => format!("; webhooks that could not be delivered are not delivered again: {why}"),
        }
    }
}

/// Whether webhooks are to arrive that can be delivered again: GitLab does not say when it has sent which.
fn expects(settings: &Settings) -> bool {
    settings.platform.is_github()
        && settings.sources.contains(&JobSource::Webhook)
        && !settings.github.webhook_secrets.is_empty()
}

impl Core {
    /// Finds webhooks, and has what failed delivered again; when to look again.
    pub(super) fn redeliver(&mut self) -> Option<Moment> {
        let pools: Vec<Name> = self.ci.forges.keys().cloned().collect();
        pools.iter().for_each(|pool| self.find_webhook(pool));
        let agents = self.agents();
        self.ci.webhooks.retain(|receiver, _| agents.contains_key(receiver));
        let mut wake = None::<Moment>;
        for (receiver, (pool, owner)) in agents {
            let Some(dispatch) = self.ci.servers.get_mut(&receiver.api) else { continue };
            let is_active = dispatch.table().all().any(crate::jobs::table::Job::is_open);
            let new = || Redelivery::new(receiver.hook);
            let redelivery = self.ci.webhooks.entry(receiver.clone()).or_insert_with(new);
            let given_up = redelivery.given_up();
            let asks = redelivery.decide(is_active, dispatch.allowance(&owner), self.now);
            let given_up = redelivery.given_up() - given_up;
            let next = redelivery.wake().max(self.now.monotonic.after(AGAIN));
            wake = wake.into_iter().chain([next]).min();
            let asked = asks.iter().filter(|ask| matches!(ask, forge::Ask::Redeliver { .. })).count();
            for ask in asks {
                let call = match ask {
                    forge::Ask::Redeliver { .. } => Call::Redelivery(receiver.clone()),
                    _ => Call::Deliveries(receiver.clone()),
                };
                self.ask_forge(&pool, ask, call);
            }
            self.report_redeliveries(&pool, asked, given_up);
        }
        wake
    }

    fn report_redeliveries(&mut self, pool: &Name, asked: usize, given_up: u64) {
        if asked == 0 && given_up == 0 {
            return;
        }
        let uid = self.ci.forges.get(pool).map(|forge| forge.uid().to_owned()).unwrap_or_default();
        let asked = u64::try_from(asked).unwrap_or(u64::MAX);
        self.notify(Notice::WebhooksRedelivered { pool: pool.clone(), uid, asked, given_up });
    }

    /// Every webhook that was found, with the pool whose credentials are used, and the owner whose limit counts.
    fn agents(&self) -> BTreeMap<Receiver, (Name, String)> {
        let mut agents = BTreeMap::new();
        for (pool, forge) in &self.ci.forges {
            let (Ok(settings), Some(Ok(Some(hook)))) = (&forge.settings, &forge.webhook.found) else { continue };
            if !expects(settings) || !forge.is_connected() {
                continue;
            }
            let app = settings.github.credentials.as_ref().and_then(|credentials| credentials.app.as_ref());
            let of = match (hook, app) {
                (Hook::App, Some(app)) => format!("App {}", app.id),
                _ => settings.address.page.to_lowercase(),
            };
            let receiver = Receiver { api: settings.address.api.clone(), of, hook: *hook };
            agents.entry(receiver).or_insert_with(|| (pool.clone(), settings.scope.owner.clone()));
        }
        agents
    }

    fn find_webhook(&mut self, pool: &Name) {
        let now = self.now.monotonic;
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let is_connected = forge.is_connected();
        let Ok(settings) = &forge.settings else { return };
        if !is_connected || !expects(settings) || forge.webhook.is_asking || forge.webhook.next > now {
            return;
        }
        let address = settings.github.webhook_address.clone();
        (forge.webhook.is_asking, forge.webhook.next) = (true, now.after(FIND));
        self.ask_forge(pool, forge::Ask::FindHook { address }, Call::Webhook(pool.clone()));
    }

    /// Takes the webhook that was found.
    pub(super) fn webhook_found(&mut self, pool: &Name, answer: ForgeAnswer) {
        let now = self.now.monotonic;
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        forge.webhook.is_asking = false;
        let is_late = matches!(&answer, Err(Failure::Transient(_) | Failure::RateLimited { .. }));
        if is_late {
            forge.webhook.next = now.after(Duration::from_secs(60));
            return self.wake(Due::Jobs, now.after(Duration::from_secs(60)));
        }
        forge.webhook.found = Some(match answer {
            Ok(forge::Answer::Hook(found)) => Ok(found),
            Ok(_) => Err("the platform answered something else".to_owned()),
            Err(failure) => Err(failure.to_string()),
        });
        self.due.insert(Due::Pool(pool.clone()));
    }

    /// Takes a list of deliveries.
    pub(super) fn deliveries_listed(&mut self, of: &Receiver, answer: ForgeAnswer, limited: Option<Timestamp>) {
        self.pause_of(of, limited);
        let now = self.now;
        let Some(redelivery) = self.ci.webhooks.get_mut(of) else { return };
        let message = match answer {
            Ok(forge::Answer::Deliveries(found)) => return redelivery.listed(&found, now),
            answer => answer.err().map(|failure| failure.to_string()).unwrap_or_default(),
        };
        redelivery.not_listed(now);
        self.notify(Notice::ForgeFailed { what: "list deliveries of the webhook", message });
    }

    /// Takes the answer to a redelivery. Whether it arrived, the next list says.
    pub(super) fn redelivered(&mut self, of: &Receiver, answer: ForgeAnswer, limited: Option<Timestamp>) {
        self.pause_of(of, limited);
        if let Err(failure) = answer {
            self.notify(Notice::ForgeFailed { what: "deliver a webhook again", message: failure.to_string() });
        }
    }

    fn pause_of(&mut self, of: &Receiver, limited: Option<Timestamp>) {
        if let Some((_, owner)) = self.agents().remove(of) {
            self.pause(&of.api, &owner, limited);
        }
    }
}

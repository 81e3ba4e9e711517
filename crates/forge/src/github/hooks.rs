//! Webhooks and their deliveries: which there are, and once more.

use crate::github::client::{Client, Sent, Who};
use crate::github::login::Login;
use crate::github::trouble::{Need, Trouble};
use crate::github::wire::{HookConfig, WireDelivery, WireHook};
use fleet::forge::budget::Priority;
use fleet::forge::{Answer, Delivery, Failure, Hook, Scope, WEBHOOK_PATH};
use http::Method;
use jiff::Timestamp;

/// GitHub keeps three days of deliveries; no more pages than this are read.
const MOST_PAGES: usize = 200;

/// Finds the webhook that is sent to an address, or without one that of the App.
pub(crate) async fn find(client: &Client, address: Option<&str>) -> Result<Answer, Failure> {
    let fail = |trouble: &Trouble, hook| client.failure(trouble, "looking for the webhook", need(hook));
    let is_wanted = |config: &HookConfig| {
        let found = plain(&config.url);
        address.map_or_else(|| found.ends_with(WEBHOOK_PATH), |address| plain(address) == found)
    };
    if matches!(client.login, Login::App(_)) {
        let sent = Sent::get("/app/hook/config", &[]).by(Who::App).priority(Priority::Bulk);
        match client.send(&sent).await {
            Ok(content) if is_wanted(&content.read().map_err(|trouble| fail(&trouble, Hook::App))?) => {
                return Ok(Answer::Hook(Some(Hook::App)));
            }
            Ok(_) => {}
            // An App without a webhook.
            Err(trouble) if trouble.is(404) => {}
            Err(trouble) => return Err(fail(&trouble, Hook::App)),
        }
    }
    // Webhooks of others must not be delivered again, so that only a named one is looked for here.
    if address.is_none() || matches!(client.address.scope, Scope::Enterprise(_)) {
        return Ok(Answer::Hook(None));
    }
    for page in 1..=MOST_PAGES {
        let sent = Sent::list("/{scope}/hooks", &[]).query("page", page.to_string());
        let content = client.send(&sent).await.map_err(|trouble| fail(&trouble, Hook::Scope(0)))?;
        let hooks: Vec<WireHook> = content.read().map_err(|trouble| fail(&trouble, Hook::Scope(0)))?;
        if let Some(hook) = hooks.iter().find(|hook| is_wanted(&hook.config)) {
            return Ok(Answer::Hook(Some(Hook::Scope(hook.id))));
        }
        if !content.has_next() {
            break;
        }
    }
    Ok(Answer::Hook(None))
}

/// An address as it is compared with others.
fn plain(address: &str) -> String {
    address.trim_end_matches('/').to_lowercase()
}

/// Lists the deliveries of a webhook since a moment, the newest first.
pub(crate) async fn deliveries(client: &Client, hook: Hook, since: Timestamp) -> Result<Answer, Failure> {
    let fail = |trouble: &Trouble| client.failure(trouble, "listing deliveries of the webhook", need(hook));
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let id = id(client, hook)?;
        let mut sent = match hook {
            Hook::App => Sent::list("/app/hook/deliveries", &[]).by(Who::App),
            Hook::Scope(_) => Sent::list("/{scope}/hooks/{hook}/deliveries", &[&id]),
        };
        if let Some(cursor) = cursor.take() {
            sent = sent.query("cursor", cursor);
        }
        let content = client.send(&sent).await.map_err(|trouble| fail(&trouble))?;
        let page: Vec<WireDelivery> = content.read().map_err(|trouble| fail(&trouble))?;
        // Moments of the server are whole seconds of its clock.
        let earliest = since.as_second() + client.clock_ahead() - 1;
        let page: Vec<Delivery> = page.into_iter().map(Delivery::from).collect();
        let is_over = page.last().is_none_or(|last| last.at.as_second() < earliest);
        found.extend(page.into_iter().filter(|delivery| delivery.at.as_second() >= earliest));
        cursor = content.next("cursor");
        if is_over || cursor.is_none() {
            break;
        }
    }
    Ok(Answer::Deliveries(found))
}

/// Has a webhook delivered again.
pub(crate) async fn redeliver(client: &Client, hook: Hook, delivery: u64) -> Result<Answer, Failure> {
    let (id, delivery) = (id(client, hook)?, delivery.to_string());
    let sent = match hook {
        Hook::App => Sent::new(Method::POST, "/app/hook/deliveries/{delivery}/attempts", &[&delivery]).by(Who::App),
        Hook::Scope(_) => {
            Sent::new(Method::POST, "/{scope}/hooks/{hook}/deliveries/{delivery}/attempts", &[&id, &delivery])
        }
    };
    let doing = format!("redelivering {delivery}");
    let sent = client.send(&sent).await;
    sent.map(|_| Answer::Done).map_err(|trouble| client.failure(&trouble, &doing, need(hook)))
}

fn need(hook: Hook) -> Need {
    match hook {
        Hook::App => Need::App,
        Hook::Scope(_) => Need::Hooks,
    }
}

/// The id of a webhook of the scope, which an enterprise has not.
fn id(client: &Client, hook: Hook) -> Result<String, Failure> {
    match (hook, &client.address.scope) {
        (Hook::Scope(_), Scope::Enterprise(name)) => Err(Failure::Configuration {
            message: format!("deliveries of webhooks of the enterprise {name} cannot be read"),
            remedy: "use the webhook of a GitHub App, an organisation or a repository".into(),
        }),
        (Hook::Scope(id), _) => Ok(id.to_string()),
        (Hook::App, _) => Ok(String::new()),
    }
}

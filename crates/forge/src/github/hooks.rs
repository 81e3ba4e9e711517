//! Deliveries of webhooks: which there were, and once more.

use crate::github::client::{Client, Sent, Who};
use crate::github::trouble::{Need, Trouble};
use crate::github::wire::WireDelivery;
use fleet::forge::{Answer, Delivery, Failure, Hook, Scope};
use http::Method;
use jiff::Timestamp;

/// GitHub keeps three days of deliveries; no more pages than this are read.
const MOST_PAGES: usize = 200;

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

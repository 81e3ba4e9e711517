//! Hooks, and what was delivered to them.

use crate::hash::{hex, hmac};
use crate::names::Scope;
use crate::stand_in::StandIn;
use serde_json::{Value, json};
use std::time::Duration;

/// Who is told of events.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// Its id.
    pub id: u64,
    /// Whose events; nothing for the hook of the App.
    pub scope: Option<Scope>,
    /// Where they are sent.
    pub url: String,
    /// What they are signed with.
    pub secret: Option<String>,
    /// Which events.
    pub events: Vec<String>,
    /// Whether it is on.
    pub is_active: bool,
    pub(crate) created: Duration,
}

/// A webhook that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id, for [`StandIn::delivered`]; a redelivery has another one.
    pub id: u64,
    /// The hook.
    pub hook: u64,
    /// Where it is sent.
    pub url: String,
    /// All headers but those of the connection.
    pub headers: Vec<(&'static str, String)>,
    /// The body, which is signed.
    pub body: Vec<u8>,
}

/// A delivery as the API shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRecord {
    /// Its id.
    pub id: u64,
    /// The id in `X-GitHub-Delivery`, which a redelivery keeps.
    pub guid: String,
    /// The hook.
    pub hook: u64,
    /// When it was sent.
    pub at: Duration,
    /// The event.
    pub event: String,
    /// The action of the event.
    pub action: Option<String>,
    /// The code of the answer; nothing if there is none.
    pub status: Option<u16>,
    /// Whether it is known what became of it. Only then it is listed.
    pub is_done: bool,
    /// Whether it is a redelivery.
    pub is_redelivery: bool,
    pub(crate) payload: Value,
}

impl Hook {
    pub(crate) fn json(&self, state: &StandIn) -> Value {
        let path = self.scope.as_ref().map_or("app".to_owned(), Scope::api_path);
        let url = format!("{}/{path}/hooks/{}", state.api(), self.id);
        json!({
            "type": if matches!(self.scope, Some(Scope::Repository(_))) { "Repository" } else { "Organization" },
            "id": self.id,
            "name": "web",
            "active": self.is_active,
            "events": self.events,
            "config": self.config(),
            "updated_at": state.date(self.created),
            "created_at": state.date(self.created),
            "url": url,
            "ping_url": format!("{url}/pings"),
            "deliveries_url": format!("{url}/deliveries"),
        })
    }

    pub(crate) fn config(&self) -> Value {
        let mut config = json!({"content_type": "json", "insecure_ssl": "0", "url": self.url});
        if self.secret.is_some() {
            config["secret"] = "********".into();
        }
        config
    }

    /// A delivery of this record.
    pub(crate) fn deliver(&self, record: &DeliveryRecord) -> Delivery {
        let body = record.payload.to_string().into_bytes();
        let (target_id, target) = match &self.scope {
            None => (crate::Setup::APP_ID, "integration"),
            Some(Scope::Repository(_)) => (1, "repository"),
            Some(_) => (1, "organization"),
        };
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("user-agent", "GitHub-Hookshot/stand-in".to_owned()),
            ("x-github-delivery", record.guid.clone()),
            ("x-github-event", record.event.clone()),
            ("x-github-hook-id", self.id.to_string()),
            ("x-github-hook-installation-target-id", target_id.to_string()),
            ("x-github-hook-installation-target-type", target.to_owned()),
        ];
        if let Some(secret) = &self.secret {
            headers.push(("x-hub-signature-256", format!("sha256={}", hex(&hmac(secret.as_bytes(), &body)))));
        }
        Delivery { id: record.id, hook: self.id, url: self.url.clone(), headers, body }
    }
}

impl DeliveryRecord {
    /// What went right or wrong, in the words of the API.
    pub(crate) fn outcome(&self) -> (u16, String) {
        match self.status {
            Some(status @ 200..=299) => (status, "OK".to_owned()),
            Some(status) => (status, format!("Invalid HTTP Response: {status}")),
            None => (502, "failed to connect to host".to_owned()),
        }
    }

    pub(crate) fn json(&self, state: &StandIn) -> Value {
        let (code, status) = self.outcome();
        let scope = state.hooks.get(&self.hook).and_then(|hook| hook.scope.clone());
        json!({
            "id": self.id,
            "guid": self.guid,
            "delivered_at": state.date(self.at),
            "redelivery": self.is_redelivery,
            "duration": 0.03,
            "status": status,
            "status_code": code,
            "event": self.event,
            "action": self.action,
            "installation_id": scope.is_none().then_some(crate::Setup::INSTALLATION),
            "repository_id": self.payload.pointer("/repository/id"),
            "throttled_at": null,
        })
    }
}

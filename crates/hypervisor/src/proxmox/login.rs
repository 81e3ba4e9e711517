//! Logs in to Proxmox VE: with an API token in every request, or with a ticket that is renewed in time.

use crate::proxmox::client::{Call, Client, Content, parsed};
use crate::proxmox::trouble::Trouble;
use crate::settings::Credentials;
use http::Method;
use http::header::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A ticket is valid for two hours.
const RENEW_AFTER: Duration = Duration::from_secs(90 * 60);

pub(crate) struct Login {
    credentials: Credentials,
    /// The header of an API token.
    token: Option<HeaderValue>,
    ticket: Mutex<Option<Arc<Ticket>>>,
}

/// A ticket, as it is sent.
pub(crate) struct Ticket {
    pub(crate) cookie: HeaderValue,
    pub(crate) prevention: HeaderValue,
    since: Instant,
}

#[derive(Deserialize)]
struct Granted {
    #[serde(default)]
    ticket: Option<String>,
    #[serde(default, rename = "CSRFPreventionToken")]
    prevention: Option<String>,
    #[serde(default, rename = "NeedTFA")]
    second_factor: Option<Value>,
}

impl Login {
    pub(crate) fn new(credentials: Credentials) -> Result<Login, Trouble> {
        let token = match &credentials {
            Credentials::Token { id, secret } => {
                let has_parts = id.split_once('!').is_some_and(|(user, name)| user.contains('@') && !name.is_empty());
                if !has_parts {
                    return Err(wrong("the id of the API token is not of the form USER@REALM!NAME"));
                }
                Some(hidden(&format!("PVEAPIToken={id}={}", secret.expose().trim()))?)
            }
            Credentials::Password { username, .. } if !username.contains('@') => {
                return Err(wrong("the user is not of the form USER@REALM"));
            }
            Credentials::Password { .. } => None,
        };
        Ok(Login { credentials, token, ticket: Mutex::default() })
    }

    pub(crate) fn user(&self) -> &str {
        self.credentials.user().split('!').next().unwrap_or_default()
    }

    pub(crate) fn token(&self) -> Option<HeaderValue> {
        self.token.clone()
    }

    /// The ticket for the next request; nothing with an API token. One that was refused is not used again; of several requests that need
    /// a new one, one logs in.
    pub(crate) async fn ticket(
        &self,
        client: &Client,
        refused: Option<&Arc<Ticket>>,
    ) -> Result<Option<Arc<Ticket>>, Trouble> {
        let Credentials::Password { username, password } = &self.credentials else { return Ok(None) };
        let mut known = self.ticket.lock().await;
        let is_good = |ticket: &&Arc<Ticket>| {
            ticket.since.elapsed() < RENEW_AFTER && !refused.is_some_and(|refused| Arc::ptr_eq(ticket, refused))
        };
        if let Some(ticket) = known.as_ref().filter(is_good) {
            return Ok(Some(ticket.clone()));
        }
        let parameters = vec![("username", username.clone()), ("password", password.expose().to_owned())];
        let content = Content::Parameters(parameters);
        let since = Instant::now();
        let call = Call { method: Method::POST, path: "/access/ticket", parts: &[], content };
        let answer = client.exchange(&call, None).await.map_err(|trouble| match trouble {
            // The text of the server does not say what was tried.
            Trouble::Answered { code: 401, message } => {
                Trouble::Answered { code: 401, message: format!("no ticket: {message}") }
            }
            other => other,
        })?;
        let granted: Granted = parsed(call.path, &answer)?;
        if granted.second_factor.is_some_and(|factor| factor != Value::Null && factor != 0) {
            return Err(wrong("the user needs a second factor"));
        }
        let (Some(ticket), Some(prevention)) = (granted.ticket, granted.prevention) else {
            return Err(Trouble::Misread { path: "/access/ticket", why: "it has no ticket".into() });
        };
        let cookie = hidden(&format!("PVEAuthCookie={ticket}"))?;
        let ticket = Arc::new(Ticket { cookie, prevention: hidden(&prevention)?, since });
        *known = Some(ticket.clone());
        Ok(Some(ticket))
    }
}

fn hidden(text: &str) -> Result<HeaderValue, Trouble> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| wrong("the credentials contain characters that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn wrong(message: &str) -> Trouble {
    let remedy =
        "use an API token: its id is USER@REALM!NAME, its secret is the UUID that was shown when it was created";
    Trouble::Settings { message: message.into(), remedy: remedy.into() }
}

//! Logs in to GitHub: with a personal access token, or as an App whose installation gets a token that is renewed in time.

use crate::github::client::{Client, Sent};
use crate::github::jwt::Key;
use crate::github::trouble::Trouble;
use crate::settings::{Credentials, Secret};
use fleet::forge::Scope;
use fleet::forge::budget::Priority;
use http::Method;
use http::header::HeaderValue;
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A token is renewed so long before its end at the latest.
const MARGIN: Duration = Duration::from_secs(300);

/// Who asks.
pub(crate) enum Login {
    /// A person, with the header of the token.
    Person(HeaderValue),
    /// An App.
    App(Box<App>),
}

pub(crate) struct App {
    id: String,
    key: Key,
    given: Option<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    installation: Option<u64>,
    token: Option<Arc<Granted>>,
}

/// A token of an installation.
pub(crate) struct Granted {
    pub(crate) header: HeaderValue,
    pub(crate) installation: u64,
    pub(crate) permissions: BTreeMap<String, String>,
    renew_at: Timestamp,
}

#[derive(Deserialize)]
struct Installation {
    id: u64,
    #[serde(default)]
    suspended_at: Option<String>,
}

#[derive(Deserialize)]
struct AccessToken {
    token: String,
    expires_at: Timestamp,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
}

impl Login {
    /// What is wrong with the credentials otherwise.
    pub(crate) fn new(credentials: &Credentials, scope: &Scope) -> Result<Login, Trouble> {
        let wrong = |message: String, remedy: &str| Trouble::Settings { message, remedy: remedy.to_owned() };
        let key_remedy = "give the id of the App and the private key that GitHub made for it, in PEM";
        match (credentials, scope) {
            (Credentials::Token(token), _) if token.expose().trim().is_empty() => {
                Err(wrong("the personal access token is empty".into(), "give a personal access token, or a GitHub App"))
            }
            (Credentials::Token(token), _) => Ok(Login::Person(bearer(token)?)),
            (Credentials::App { .. }, Scope::Enterprise(_)) => Err(wrong(
                "an App cannot manage the runners of an enterprise".into(),
                "use a personal access token with the scope manage_runners:enterprise, or the address of an organisation",
            )),
            (Credentials::App { id, .. }, _) if id.trim().is_empty() => {
                Err(wrong("the App has no id".into(), key_remedy))
            }
            (Credentials::App { id, installation, key }, _) => {
                let key = Key::parse(key.expose()).map_err(|message| wrong(message, key_remedy))?;
                let (id, state) = (id.trim().to_owned(), Mutex::default());
                Ok(Login::App(Box::new(App { id, key, given: *installation, state })))
            }
        }
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Login::Person(_) => "a personal access token".to_owned(),
            Login::App(app) => format!("the App {}", app.id),
        }
    }
}

impl App {
    /// The header of a token that the App signs at a moment of the server.
    pub(crate) fn header(&self, now: i64) -> Result<HeaderValue, Trouble> {
        let failed = |message| Trouble::Settings { message, remedy: "make another private key for the App".into() };
        bearer(&self.key.sign(&self.id, now).map_err(failed)?.into())
    }

    /// The token for the next request. One that was refused is not used again; of several requests that need a new one, one asks for it.
    pub(crate) async fn granted(
        &self,
        client: &Client,
        refused: Option<&Arc<Granted>>,
    ) -> Result<Arc<Granted>, Trouble> {
        let mut state = self.state.lock().await;
        let is_good = |token: &&Arc<Granted>| {
            Timestamp::now() < token.renew_at && !refused.is_some_and(|refused| Arc::ptr_eq(token, refused))
        };
        if let Some(token) = state.token.as_ref().filter(is_good) {
            return Ok(token.clone());
        }
        let installation = match self.given.or(state.installation) {
            Some(installation) => installation,
            None => self.find(client).await?,
        };
        state.installation = Some(installation);
        let path = "/app/installations/{installation}/access_tokens";
        let sent = Sent::new(Method::POST, path, &[&installation.to_string()]).priority(Priority::Urgent);
        let asked = Timestamp::now();
        let token: AccessToken = match client.as_app(self, &sent).await {
            Ok(content) => content.read()?,
            Err(trouble) => {
                // It may have been installed again, with another id.
                if trouble.is(404) {
                    state.installation = None;
                }
                return Err(trouble);
            }
        };
        let granted = Arc::new(Granted {
            header: bearer(&token.token.into())?,
            installation,
            permissions: token.permissions,
            renew_at: renew_at(asked, client.local(token.expires_at.as_second()), MARGIN),
        });
        state.token = Some(granted.clone());
        Ok(granted)
    }

    /// The next request needs another token than this one.
    pub(crate) async fn forget(&self, former: &Arc<Granted>) {
        let mut state = self.state.lock().await;
        state.token.take_if(|token| Arc::ptr_eq(token, former));
    }

    /// Finds the installation of the App in the scope.
    async fn find(&self, client: &Client) -> Result<u64, Trouble> {
        let scope = &client.address.scope;
        let sent = Sent::get("/{scope}/installation", &[]).priority(Priority::Urgent);
        let found = match (client.as_app(self, &sent).await, scope) {
            (Err(trouble), Scope::Organization(name)) if is_not_installed(&trouble) => {
                let of_user = Sent::get("/users/{user}/installation", &[name]).priority(Priority::Urgent);
                client.as_app(self, &of_user).await
            }
            (found, _) => found,
        };
        let found: Installation = match found {
            Err(trouble) if is_not_installed(&trouble) => {
                return Err(Trouble::Settings {
                    message: format!("the App {} is not installed in the {scope}", self.id),
                    remedy: "install the App there, or correct the address".into(),
                });
            }
            found => found?.read()?,
        };
        match found.suspended_at {
            None => Ok(found.id),
            Some(_) => Err(Trouble::Settings {
                message: format!("the installation {} of the App in the {scope} is suspended", found.id),
                remedy: "unsuspend it in the settings of the installation".into(),
            }),
        }
    }
}

/// Whether the App exists and is not installed there. A user has an installation at another path than an organisation.
fn is_not_installed(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Answered { code: 404, message, .. } if !message.contains("Integration not found"))
}

/// When a token that was asked for at a moment and ends at another one is renewed: a margin before its end, or at three quarters of a short life.
pub(crate) fn renew_at(asked: Timestamp, ends: Timestamp, margin: Duration) -> Timestamp {
    let life = Duration::try_from(ends.duration_since(asked)).unwrap_or_default();
    ends - margin.min(life / 4)
}

/// The header of a token, which is not shown.
pub(crate) fn bearer(token: &Secret) -> Result<HeaderValue, Trouble> {
    authorization("Bearer", token)
}

/// The header of a token with a scheme, which is not shown.
pub(crate) fn authorization(scheme: &str, token: &Secret) -> Result<HeaderValue, Trouble> {
    let value = HeaderValue::from_str(&format!("{scheme} {}", token.expose().trim()));
    let mut value = value.map_err(|_| Trouble::Settings {
        message: "the token contains characters that cannot be sent".into(),
        remedy: "give the token as GitHub showed it, in one line".into(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::renew_at;
    use jiff::Timestamp;
    use std::time::Duration;

    #[test]
    fn tokens_are_renewed_before_their_end() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let margin = Duration::from_secs(300);
        assert_eq!(renew_at(at(0), at(3600), margin), at(3300));
        assert_eq!(renew_at(at(0), at(8), margin), at(6));
        assert_eq!(renew_at(at(10), at(8), margin), at(8), "one that has ended is not used");
    }
}

//! The connection to the service of scale sets: a registration token gets its address and a token, which is renewed in time.

use crate::github::client::{Client, Sent, read, refused_by, unanswered, user_agent, with_query};
use crate::github::jwt;
use crate::github::login::{authorization, bearer, renew_at};
use crate::github::trouble::Trouble;
use crate::settings::Secret;
use crate::transport::{Call, Reply};
use bytes::Bytes;
use fleet::forge::budget::Priority;
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The version of the service that is asked for.
const API_VERSION: &str = "6.0-preview";
/// A token is renewed so long before its end.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a token is used that does not say when it ends.
const UNKNOWN_LIFE: i64 = 1800;

/// The service of scale sets of one scope.
pub(crate) struct Service {
    allows_http: bool,
    connection: Mutex<Option<Arc<Connection>>>,
}

struct Connection {
    base: String,
    header: HeaderValue,
    renew_at: Timestamp,
}

#[derive(Deserialize)]
struct Registration {
    token: String,
}

#[derive(Deserialize)]
struct Connected {
    url: String,
    token: String,
}

/// A request to the service; parts of its path are numbers and ids of the service.
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Below the address of the service.
    pub(crate) target: String,
    /// The path with placeholders, for reports.
    pub(crate) path: &'static str,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

impl Asked {
    pub(crate) fn new(method: Method, path: &'static str, target: String) -> Asked {
        Asked { method, target, path, query: Vec::new(), body: None }
    }

    pub(crate) fn json(mut self, body: Value) -> Asked {
        self.body = Some(body);
        self
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Asked {
        self.query.push((name, value.into()));
        self
    }
}

impl Service {
    pub(crate) fn new(allows_http: bool) -> Service {
        Service { allows_http, connection: Mutex::default() }
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn read<T: DeserializeOwned>(&self, client: &Client, asked: &Asked) -> Result<T, Trouble> {
        read(&self.send(client, asked).await?.body, asked.path)
    }

    /// Sends a request with the token of the service, which is renewed once if it is refused.
    pub(crate) async fn send(&self, client: &Client, asked: &Asked) -> Result<Reply, Trouble> {
        let connection = self.connect(client, None).await?;
        match self.below(client, asked, &connection.base, connection.header.clone()).await {
            Err(trouble) if trouble.is(401) => {
                let connection = self.connect(client, Some(&connection)).await?;
                self.below(client, asked, &connection.base, connection.header.clone()).await
            }
            answer => answer,
        }
    }

    /// Sends a request with another token than that of the service.
    pub(crate) async fn send_with(
        &self,
        client: &Client,
        asked: &Asked,
        header: HeaderValue,
    ) -> Result<Reply, Trouble> {
        let base = self.connect(client, None).await?.base.clone();
        self.below(client, asked, &base, header).await
    }

    async fn below(&self, client: &Client, asked: &Asked, base: &str, header: HeaderValue) -> Result<Reply, Trouble> {
        let url = with_query(&format!("{base}{}", asked.target), &asked.query);
        let url = with_query(&url, &[("api-version", API_VERSION.to_owned())]);
        self.at(client, asked, &url, header, Vec::new(), client.limits.request).await
    }

    /// Sends a request to an address of the service.
    pub(crate) async fn at(
        &self,
        client: &Client,
        asked: &Asked,
        url: &str,
        header: HeaderValue,
        more: Vec<(HeaderName, HeaderValue)>,
        limit: Duration,
    ) -> Result<Reply, Trouble> {
        let accept = HeaderValue::from_static("application/json; api-version=6.0-preview");
        let mut headers = vec![(ACCEPT, accept), user_agent(), (AUTHORIZATION, header)];
        headers.extend(more);
        let body = asked.body.as_ref().map(|body| Bytes::from(body.to_string()));
        headers.extend(body.as_ref().map(|_| (CONTENT_TYPE, HeaderValue::from_static("application/json"))));
        let (method, path) = (asked.method.clone(), asked.path);
        let call = Call { method, url: url.to_owned(), path, headers, body: body.unwrap_or_default(), limit };
        let reply = client.transport.send(call).await.map_err(unanswered)?;
        match reply.code {
            200..=299 => Ok(reply),
            _ => Err(refused_by(&reply)),
        }
    }

    /// The connection for the next request. One whose token was refused is not used again; of several requests, one connects.
    async fn connect(&self, client: &Client, refused: Option<&Arc<Connection>>) -> Result<Arc<Connection>, Trouble> {
        let mut known = self.connection.lock().await;
        let is_good = |connection: &&Arc<Connection>| {
            Timestamp::now() < connection.renew_at && !refused.is_some_and(|refused| Arc::ptr_eq(connection, refused))
        };
        if let Some(connection) = known.as_ref().filter(is_good) {
            return Ok(connection.clone());
        }
        let asked_at = Timestamp::now();
        let found = match self.register(client).await {
            // The registration token may take a moment to be known everywhere: another one is.
            Err(trouble) if trouble.is(401) || trouble.is(403) => self.register(client).await?,
            found => found?,
        };
        let now = Timestamp::now().as_second() + client.clock_ahead();
        let ends = jwt::expires(&found.token).unwrap_or(now + UNKNOWN_LIFE);
        let connection = Arc::new(Connection {
            base: format!("{}/", self.checked(&found.url)?.trim_end_matches('/')),
            header: bearer(&found.token.into())?,
            renew_at: renew_at(asked_at, client.local(ends), MARGIN),
        });
        *known = Some(connection.clone());
        Ok(connection)
    }

    async fn register(&self, client: &Client) -> Result<Connected, Trouble> {
        let sent = Sent::new(Method::POST, "/{scope}/actions/runners/registration-token", &[]);
        let content = client.send(&sent.priority(Priority::Urgent)).await?;
        let token: Secret = content.read::<Registration>()?.token.into();
        let path = "/actions/runner-registration";
        let asked = Asked::new(Method::POST, path, String::new())
            .json(json!({"url": client.address.page, "runner_event": "register"}));
        let (url, limit) = (format!("{}{path}", client.address.api), client.limits.request);
        let reply = self.at(client, &asked, &url, authorization("RemoteAuth", &token)?, Vec::new(), limit).await?;
        client.note_clock(&reply);
        read(&reply.body, path)
    }

    /// An address that the server gave, if credentials may be sent there.
    pub(crate) fn checked<'a>(&self, url: &'a str) -> Result<&'a str, Trouble> {
        match url.starts_with("https://") || (self.allows_http && url.starts_with("http://")) {
            true => Ok(url),
            false => Err(Trouble::Settings {
                message: "the service of scale sets has no address with https://".into(),
                remedy: "check the address of the server, and its own configuration of TLS".into(),
            }),
        }
    }
}

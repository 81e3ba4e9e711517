//! A server that is no API server, such as a collector of traces. It is reached with the code of the API server's connection, because
//! another kind of client would be much more code in memory.

use crate::connect::{Error, client};
use crate::request::{Failure, chain};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Request, Uri};
use kube::client::Body;
use kube::{Client, Config};
use std::time::Duration;

/// A server that takes posts at one address.
pub struct OtherServer {
    client: Client,
    path: String,
}

/// What it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The header Retry-After, if it is a number of seconds.
    pub retry_after: Option<Duration>,
}

impl OtherServer {
    /// The server at this address; every post has these headers. For https, the certificates of the system are trusted.
    pub fn new(address: &Uri, headers: Vec<(HeaderName, HeaderValue)>) -> Result<OtherServer, Error> {
        let why = |why: String| Error::Client { server: address.to_string(), why };
        let path = address.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut parts = address.clone().into_parts();
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        let base = Uri::from_parts(parts).map_err(|error| why(error.to_string()))?;
        let mut config = Config::new(base);
        config.headers = headers;
        Ok(OtherServer { client: client(&config).map_err(|error| why(chain(&error)))?, path })
    }

    /// Posts a JSON text.
    pub async fn post(&self, body: Vec<u8>, timeout: Duration) -> Result<Answer, Failure> {
        let request = Request::post(&self.path).header(CONTENT_TYPE, "application/json").body(Body::from(body));
        let request = request.map_err(|error| Failure::Unanswered(error.to_string()))?;
        let exchange = async {
            let response = self.client.send(request).await?;
            let (code, wait) = (response.status().as_u16(), response.headers().get(RETRY_AFTER));
            let wait = wait.and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
            // A connection whose answer was read is used again.
            response.into_body().collect_bytes().await?;
            Ok(Answer { code, retry_after: wait.map(Duration::from_secs) })
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err(Failure::timeout()))
    }
}

//! One request to the API, read from HTTP or made by a simulation.

use crate::body;
use crate::response::{Refusal, Response};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Read.
    Get,
    /// Create or do.
    Post,
    /// Change.
    Put,
    /// Delete.
    Delete,
}

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }

    fn parse(text: &str) -> Option<Method> {
        [Method::Get, Method::Post, Method::Put, Method::Delete].into_iter().find(|method| method.as_str() == text)
    }
}

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody.
    None,
    /// Somebody who logged in with a password.
    Ticket {
        /// The cookie `PVEAuthCookie`.
        ticket: String,
        /// The header `CSRFPreventionToken`, needed for writes.
        csrf: Option<String>,
    },
    /// An API token, `user@realm!id=secret`.
    Token(String),
}

/// An uploaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub method: Method,
    /// The path below `/api2/json`, such as `/nodes/pve1/qemu`, decoded.
    pub path: String,
    /// The parameters of query and body.
    pub parameters: BTreeMap<String, String>,
    /// Who sends it.
    pub credentials: Credentials,
    /// What is uploaded.
    pub file: Option<File>,
}

impl Request {
    /// A request without parameters and credentials.
    pub fn new(method: Method, path: impl Into<String>) -> Request {
        Request { method, path: path.into(), parameters: BTreeMap::new(), credentials: Credentials::None, file: None }
    }

    /// Adds a parameter: a text, a number or a flag.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Request {
        if let Some(text) = body::plain(value.into()) {
            self.parameters.insert(name.to_owned(), text);
        }
        self
    }

    /// Sets an API token, `user@realm!id=secret`.
    #[must_use]
    pub fn token(mut self, token: &str) -> Request {
        self.credentials = Credentials::Token(token.to_owned());
        self
    }

    /// Reads a request from HTTP: method, path with query, headers with names in lower case, and body.
    pub fn from_http(
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &[u8],
    ) -> Result<Request, Response> {
        let refuse = |status: u16, text: String| Err(Refusal::with_status(status, text).response());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(method) = Method::parse(method) else {
            return refuse(501, format!("method '{method}' not available"));
        };
        let Some(path) = path.strip_prefix("/api2/json").filter(|path| path.is_empty() || path.starts_with('/')) else {
            return refuse(404, format!("no such file '{path}'"));
        };
        let header = |name: &str| headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
        let mut request = Request::new(method, body::decode(path, false));
        request.parameters = body::form(query);
        if let Err(text) = body::read(&mut request, header("content-type").unwrap_or_default(), content) {
            return refuse(400, text);
        }
        request.credentials = credentials(header("authorization"), header("cookie"), header("csrfpreventiontoken"));
        Ok(request)
    }
}

fn credentials(authorization: Option<&str>, cookie: Option<&str>, csrf: Option<&str>) -> Credentials {
    if let Some(token) = authorization.and_then(|value| value.strip_prefix("PVEAPIToken")) {
        // Both `PVEAPIToken=` and `PVEAPIToken ` are accepted.
        return Credentials::Token(token.trim_start_matches(['=', ' ', ':']).to_owned());
    }
    let cookies = cookie.unwrap_or_default().split(';').filter_map(|cookie| cookie.trim().split_once('='));
    let ticket = cookies.into_iter().find(|(name, _)| *name == "PVEAuthCookie");
    match ticket {
        Some((_, ticket)) => Credentials::Ticket { ticket: body::decode(ticket, false), csrf: csrf.map(str::to_owned) },
        None => Credentials::None,
    }
}

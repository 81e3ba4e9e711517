//! One request to the API, read from HTTP or made by a simulation.

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
    /// Change a part.
    Patch,
    /// Replace.
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
            Method::Patch => "PATCH",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }

    /// Reads what HTTP writes.
    pub fn parse(text: &str) -> Option<Method> {
        let all = [Method::Get, Method::Post, Method::Patch, Method::Put, Method::Delete];
        all.into_iter().find(|method| method.as_str() == text)
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What it does.
    pub method: Method,
    /// The path, decoded and without `/api/v3`, such as `/orgs/acme/actions/runners`.
    pub path: String,
    /// The parameters in the address.
    pub query: BTreeMap<String, String>,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    /// The header `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The header `X-ScaleSetMaxCapacity`.
    pub max_capacity: Option<u64>,
    /// The body; null if there is none.
    pub body: Value,
}

impl Request {
    /// A request without parameters, credentials and body. What follows a `?` are parameters.
    pub fn new(method: Method, target: &str) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Request {
            method,
            path: decode(path.strip_prefix("/api/v3").unwrap_or(path)),
            query: parameters(query),
            authorization: None,
            if_none_match: None,
            max_capacity: None,
            body: Value::Null,
        }
    }

    /// Sets a token: a personal one, one of an installation, of the actions service or of a message queue.
    #[must_use]
    pub fn token(mut self, token: &str) -> Request {
        self.authorization = Some(format!("Bearer {token}"));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn json(mut self, body: Value) -> Request {
        self.body = body;
        self
    }

    /// Reads a request from HTTP: method, path with query, headers with names in lower case, and body.
    pub fn from_http(
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &[u8],
    ) -> Result<Request, Response> {
        let Some(found) = Method::parse(method) else {
            return Err(Refusal::new(404, "Not Found").response("rest"));
        };
        let header = |name: &str| headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
        let mut request = Request::new(found, target);
        request.authorization = header("authorization").map(str::to_owned);
        request.if_none_match = header("if-none-match").map(str::to_owned);
        request.max_capacity = header("x-scalesetmaxcapacity").and_then(|value| value.parse().ok());
        if !content.is_empty() {
            let failed = |_| Refusal::new(400, "Problems parsing JSON").response("rest");
            request.body = serde_json::from_slice(content).map_err(failed)?;
        }
        Ok(request)
    }
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let split = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(&value.replace('+', " ")))
    };
    pairs.map(split).collect()
}

/// Resolves `%XX`.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

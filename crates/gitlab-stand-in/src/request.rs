//! One request, read from HTTP.

use crate::answer::{Refusal, Response};
use serde_json::{Map, Value};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Read.
    Get,
    /// Create.
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
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What it does.
    pub method: Method,
    /// The parts of its path below `/api/v4`, decoded.
    pub path: Vec<String>,
    /// The parameters of its query, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// The fields of its body.
    pub body: Map<String, Value>,
    /// The token of who asks.
    pub token: Option<String>,
}

impl Request {
    /// Reads a request: method, path with query, headers with names in lower case, and body.
    pub fn from_http(
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &[u8],
    ) -> Result<Request, Response> {
        let refuse = |status: u16, text: &str| Err(Refusal::error(status, text).response());
        let all = [Method::Get, Method::Post, Method::Put, Method::Delete];
        let Some(method) = all.into_iter().find(|known| known.as_str() == method) else {
            return refuse(405, "405 Not Allowed");
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(path) = path.strip_prefix("/api/v4/") else { return refuse(404, "404 Not Found") };
        // Split before it is decoded: the path of a project is one part.
        let path = path.trim_end_matches('/').split('/').map(|part| decode(part, false)).collect();
        let pairs =
            query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let query = pairs.map(|(name, value)| (decode(name, true), decode(value, true))).collect();
        let header = |name: &str| headers.iter().find(|(found, _)| *found == name).map(|(_, value)| *value);
        let body = match content {
            [] => Map::new(),
            _ if !header("content-type").is_some_and(|kind| kind.starts_with("application/json")) => {
                return refuse(415, "The provided content-type is not supported.");
            }
            _ => match serde_json::from_slice(content) {
                Ok(Value::Object(fields)) => fields,
                _ => return refuse(400, "The request body is not valid JSON"),
            },
        };
        let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let token = header("private-token").or(bearer).map(str::to_owned);
        Ok(Request { method, path, query, body, token })
    }

    /// Its path in one text, for faults and records.
    pub fn shown(&self) -> String {
        format!("/{}", self.path.join("/"))
    }

    /// A parameter of its query.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// A flag of its query. Clients write flags as their languages do.
    pub(crate) fn asked(&self, name: &str) -> Option<bool> {
        match self.parameter(name)?.to_lowercase().as_str() {
            "true" | "1" | "t" | "yes" | "on" => Some(true),
            "false" | "0" | "f" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// All values of a list in its query.
    pub(crate) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query
            .iter()
            .filter(move |(found, _)| found.trim_end_matches("[]") == name)
            .map(|(_, value)| value.as_str())
    }

    /// A text of its body.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    /// A number of its body.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.body.get(name).and_then(Value::as_u64)
    }

    /// A flag of its body.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.body.get(name).and_then(Value::as_bool)
    }

    /// A list of texts in its body, which may be one text with commas.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        match self.body.get(name) {
            Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(text)) => text.split(',').map(|part| part.trim().to_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Resolves `%XX`, and in a query `+`.
fn decode(text: &str, is_query: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        rest = match (digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()), first) {
            (Some(byte), _) => {
                bytes.push(byte);
                tail.get(2..).unwrap_or_default()
            }
            (None, b'+') if is_query => {
                bytes.push(b' ');
                tail
            }
            (None, byte) => {
                bytes.push(byte);
                tail
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

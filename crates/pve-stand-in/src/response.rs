//! What a client gets: a code, a reason with the text of an error, and a body.

use serde_json::{Map, Value, json};

/// An answer over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The status code; 595 and 596 are Proxmox's own, for a node that cannot be reached.
    pub status: u16,
    /// The reason phrase, which has the text of an error.
    pub reason: String,
    /// The body; an answer to a client that is not authenticated has none.
    pub body: Option<Value>,
}

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    status: u16,
    text: String,
    parameters: Map<String, Value>,
    has_body: bool,
}

impl Refusal {
    /// An exception in the code of a call.
    pub(crate) fn failed(text: impl Into<String>) -> Refusal {
        Refusal::with_status(500, text)
    }

    pub(crate) fn with_status(status: u16, text: impl Into<String>) -> Refusal {
        Refusal { status, text: text.into(), parameters: Map::new(), has_body: true }
    }

    /// A client that is not authenticated.
    pub(crate) fn unauthenticated(text: impl Into<String>) -> Refusal {
        Refusal { has_body: false, ..Refusal::with_status(401, text) }
    }

    /// A missing privilege; `what` is `PATH, PRIVILEGE`.
    pub(crate) fn forbidden(what: &str) -> Refusal {
        let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
        Refusal::with_status(403, format!("Permission check failed{what}"))
    }

    /// A wrong parameter.
    pub(crate) fn parameter(name: &str, text: impl Into<String>) -> Refusal {
        Refusal::parameters([(name.to_owned(), text.into())])
    }

    pub(crate) fn parameters(found: impl IntoIterator<Item = (String, String)>) -> Refusal {
        let parameters = found.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
        Refusal { parameters, ..Refusal::with_status(400, "Parameter verification failed.") }
    }

    pub(crate) fn response(self) -> Response {
        let reason = self.text.lines().next().unwrap_or_default().to_owned();
        if !self.has_body {
            return Response { status: self.status, reason, body: None };
        }
        let mut body = json!({"data": null, "message": format!("{}\n", self.text)});
        if !self.parameters.is_empty() {
            body["errors"] = Value::Object(self.parameters);
        }
        Response { status: self.status, reason, body: Some(body) }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) data: Value,
    /// The number of all entries, where only some are shown.
    pub(crate) total: Option<usize>,
}

impl From<Value> for Answer {
    fn from(data: Value) -> Answer {
        Answer { data, total: None }
    }
}

impl Answer {
    pub(crate) fn response(self) -> Response {
        let mut body = json!({"data": self.data});
        if let Some(total) = self.total {
            body["total"] = total.into();
        }
        Response { status: 200, reason: "OK".to_owned(), body: Some(body) }
    }
}

impl Response {
    /// The data of a successful answer.
    pub fn data(&self) -> Option<&Value> {
        self.body.as_ref().filter(|_| self.status == 200)?.get("data")
    }
}

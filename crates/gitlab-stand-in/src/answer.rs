//! What a client gets: a code, headers and a body.

use serde_json::{Value, json};

/// An answer over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Headers with names in lower case, without `date` and `content-type`.
    pub headers: Vec<(&'static str, String)>,
    /// The body; a text is sent as it is.
    pub body: Option<Value>,
}

impl Response {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }
}

/// The result of a call.
pub(crate) type Answer = Result<Response, Refusal>;

pub(crate) fn ok(body: Value) -> Answer {
    Ok(Response { status: 200, headers: Vec::new(), body: Some(body) })
}

pub(crate) fn created(body: Value) -> Answer {
    Ok(Response { status: 201, headers: Vec::new(), body: Some(body) })
}

pub(crate) fn no_content() -> Answer {
    Ok(Response { status: 204, headers: Vec::new(), body: None })
}

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    status: u16,
    body: Value,
    headers: Vec<(&'static str, String)>,
}

impl Refusal {
    /// With a text as `message`, as most are.
    pub(crate) fn new(status: u16, message: &str) -> Refusal {
        Refusal { status, body: json!({"message": message}), headers: Vec::new() }
    }

    /// With a text as `error`, as those of parameters are.
    pub(crate) fn error(status: u16, error: &str) -> Refusal {
        Refusal { status, body: json!({"error": error}), headers: Vec::new() }
    }

    /// What is asked for is not there, or not seen.
    pub(crate) fn not_found(what: &str) -> Refusal {
        let middle = if what.is_empty() { String::new() } else { format!(" {what}") };
        Refusal::new(404, &format!("404{middle} Not Found"))
    }

    /// The role does not allow it.
    pub(crate) fn forbidden() -> Refusal {
        Refusal::new(403, "403 Forbidden")
    }

    /// The token has none of these scopes.
    pub(crate) fn scope(accepted: &[&str]) -> Refusal {
        let description = "The request requires higher privileges than provided by the access token.";
        let body =
            json!({"error": "insufficient_scope", "error_description": description, "scope": accepted.join(" ")});
        Refusal { status: 403, body, headers: Vec::new() }
    }

    /// Too many requests.
    pub(crate) fn later(seconds: u64) -> Refusal {
        Refusal {
            status: 429,
            body: Value::String("Retry later\n".into()),
            headers: vec![("retry-after", seconds.to_string())],
        }
    }

    pub(crate) fn response(self) -> Response {
        Response { status: self.status, headers: self.headers, body: Some(self.body) }
    }
}

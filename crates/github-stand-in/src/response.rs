//! What a client gets: a code, headers and a body.

use crate::service::Poll;
use serde_json::{Value, json};

/// An answer over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Headers with names in lower case, without `date` and `content-type`.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Value>,
    /// Whether the body starts with a byte order mark, as those of the actions service do.
    pub has_mark: bool,
}

impl Response {
    pub(crate) fn new(status: u16, body: Option<Value>) -> Response {
        Response { status, headers: Vec::new(), body, has_mark: false }
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    /// A value in the body, null if there is none.
    pub fn at(&self, pointer: &str) -> &Value {
        self.body.as_ref().and_then(|body| body.pointer(pointer)).unwrap_or(&Value::Null)
    }
}

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The name of an exception of the actions service; other refusals are of the REST API.
    exception: Option<&'static str>,
    /// The part of the documentation, if it is not that of the call.
    documentation: Option<&'static str>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), exception: None, documentation: None, headers: Vec::new() }
    }

    pub(crate) fn not_found() -> Refusal {
        Refusal::new(404, "Not Found")
    }

    /// A parameter that is missing or wrong.
    pub(crate) fn invalid(text: impl AsRef<str>) -> Refusal {
        Refusal::new(422, format!("Invalid request.\n\n{}", text.as_ref()))
    }

    /// A refusal of the actions service.
    pub(crate) fn exception(status: u16, name: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { exception: Some(name), ..Refusal::new(status, message) }
    }

    pub(crate) fn documented(mut self, documentation: &'static str) -> Refusal {
        self.documentation = Some(documentation);
        self
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Refusal {
        self.headers.push((name, value.into()));
        self
    }

    /// The answer; `documentation` is the part of the call, below the address of the documentation.
    pub(crate) fn response(self, documentation: &str) -> Response {
        let body = match self.exception {
            Some(name) => json!({
                "$id": "1",
                "innerException": null,
                "message": self.message,
                "typeName": format!("GitHub.{name}, GitHub.Actions.Runtime.WebApi"),
                "typeKey": name.rsplit('.').next(),
                "errorCode": 0,
                "eventId": 3000,
            }),
            None => json!({
                "message": self.message,
                "documentation_url": format!("https://docs.github.com/{}", self.documentation.unwrap_or(documentation)),
                "status": self.status.to_string(),
            }),
        };
        Response { headers: self.headers, ..Response::new(self.status, Some(body)) }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// What it waits for, instead of an answer.
    pub(crate) poll: Option<Poll>,
}

impl Answer {
    pub(crate) fn with_status(status: u16, body: Value) -> Answer {
        Answer { status, body: Some(body), headers: Vec::new(), poll: None }
    }

    pub(crate) fn created(body: Value) -> Answer {
        Answer::with_status(201, body)
    }

    pub(crate) fn no_content() -> Answer {
        Answer { status: 204, body: None, headers: Vec::new(), poll: None }
    }
}

impl From<Value> for Answer {
    fn from(body: Value) -> Answer {
        Answer::with_status(200, body)
    }
}

//! Lists page by page, so that a large list never needs much memory.

use crate::request::{Failure, Request, send};
use crate::server::Server;
use protocol::Served;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Few enough that a page of large objects stays small.
const ITEMS_PER_PAGE: u32 = 100;

/// The pages of one list.
pub(crate) struct Pages<'a> {
    server: &'a Server,
    kind: &'a str,
    url: String,
    accept: &'static str,
    /// The token of the next page; nothing after the last one.
    next: Option<String>,
    /// The resourceVersion of the list, once a page was read.
    pub(crate) version: String,
}

impl Pages<'_> {
    /// A list of one namespace or of all, with a label selector or an empty one.
    pub(crate) fn new<'a>(
        server: &'a Server,
        served: &'a Served,
        namespace: &str,
        selector: &str,
        accept: &'static str,
    ) -> Pages<'a> {
        let mut url = format!("{}?limit={ITEMS_PER_PAGE}", served.url(namespace, ""));
        if !selector.is_empty() {
            let selector = selector.replace('=', "%3D").replace('/', "%2F");
            url.push_str(&format!("&labelSelector={selector}"));
        }
        Pages { server, kind: &served.kind().kind, url, accept, next: Some(String::new()), version: String::new() }
    }

    /// Restricts the list to one object; an empty name restricts nothing.
    #[must_use]
    pub(crate) fn only(mut self, name: &str) -> Self {
        self.url.push_str(&field_selector(name));
        self
    }

    /// Requests the next page; nothing after the last one.
    pub(crate) async fn fetch(&mut self) -> Result<Option<String>, Failure> {
        let url = match self.next.take() {
            None => return Ok(None),
            Some(token) if token.is_empty() => self.url.clone(),
            // Tokens are URL-safe: letters, digits, - and _.
            Some(token) => format!("{}&continue={token}", self.url),
        };
        send(self.server, Request::get(self.kind, &url, self.accept)).await.map(Some)
    }

    /// The items of a page, each as text.
    pub(crate) fn items<'t>(&mut self, page: &'t str) -> Result<Vec<&'t RawValue>, Failure> {
        let page: Page<'t> = serde_json::from_str(page)?;
        self.version = page.metadata.resource_version;
        self.next = Some(page.metadata.token).filter(|token| !token.is_empty());
        Ok(page.items.unwrap_or_default())
    }
}

/// The part of a query that selects one object by its name, which needs no escaping; nothing without a name.
pub(crate) fn field_selector(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("&fieldSelector=metadata.name%3D{name}") }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    /// An empty list of metadata is null.
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: String,
}

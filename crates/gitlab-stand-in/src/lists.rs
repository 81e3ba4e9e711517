//! Pages of lists: by their number, or by the key of the last entry.

use crate::answer::{Answer, Refusal, Response};
use crate::request::Request;
use crate::stand_in::StandIn;
use serde_json::Value;

/// The size of a page: 20 unless another one is asked for, and 100 at most.
fn size(request: &Request) -> usize {
    request.parameter("per_page").and_then(|text| text.parse().ok()).unwrap_or(20).clamp(1, 100)
}

impl StandIn {
    /// A page by its number.
    pub(crate) fn page(&self, request: &Request, all: Vec<Value>) -> Answer {
        let (size, total) = (size(request), all.len());
        let page: usize = request.parameter("page").and_then(|text| text.parse().ok()).unwrap_or(1).max(1);
        let pages = total.div_ceil(size).max(1);
        let next = (page < pages).then_some(page + 1);
        let mut headers = vec![
            ("x-total", total.to_string()),
            ("x-total-pages", pages.to_string()),
            ("x-page", page.to_string()),
            ("x-per-page", size.to_string()),
            ("x-next-page", next.map(|next| next.to_string()).unwrap_or_default()),
        ];
        if let Some(next) = next {
            headers.push(("link", self.link(request, "page", &next.to_string())));
        }
        let shown = all.into_iter().skip((page - 1).saturating_mul(size)).take(size).collect();
        Ok(Response { status: 200, headers, body: Some(Value::Array(shown)) })
    }

    /// A page after the id of the last entry of the one before, the largest first, of entries with their ids. The total is not said.
    pub(crate) fn keyset(&self, request: &Request, all: Vec<(u64, Value)>) -> Answer {
        let is_asked_well = request.parameter("order_by").is_none_or(|by| by == "id")
            && request.parameter("sort").is_none_or(|sort| sort == "desc");
        if !is_asked_well {
            return Err(Refusal::error(405, "Keyset pagination is not yet available for this type of request"));
        }
        let before = match request.parameter("cursor").map(|cursor| u64::from_str_radix(cursor, 16)) {
            Some(Ok(id)) => id,
            Some(Err(_)) => return Err(Refusal::error(400, "cursor is invalid")),
            None => u64::MAX,
        };
        let mut rest: Vec<(u64, Value)> = all.into_iter().filter(|(id, _)| *id < before).collect();
        rest.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        let (size, total) = (size(request), rest.len());
        rest.truncate(size);
        let mut headers = vec![("x-per-page", size.to_string())];
        if let Some((last, _)) = rest.last().filter(|_| total > size) {
            headers.push(("link", self.link(request, "cursor", &format!("{last:x}"))));
        }
        let shown = rest.into_iter().map(|(_, entry)| entry).collect();
        Ok(Response { status: 200, headers, body: Some(Value::Array(shown)) })
    }

    /// The link to the next page: the same request with another parameter.
    fn link(&self, request: &Request, name: &str, value: &str) -> String {
        let kept = request
            .query
            .iter()
            .filter(|(found, _)| found != name)
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let query = kept.chain([(name, value)]).map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        let path = request.path.iter().map(|part| encode(part)).collect::<Vec<_>>().join("/");
        format!("<{}/api/v4/{path}?{}>; rel=\"next\"", self.setup.address, query.collect::<Vec<_>>().join("&"))
    }
}

fn encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

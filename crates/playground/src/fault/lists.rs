//! What every list gave the first time: a stale answer is taken from here.

use super::asked::Asked;
use bytes::Bytes;
use http::{HeaderMap, Response, header::ACCEPT};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub(super) struct Lists(Mutex<HashMap<String, Response<Bytes>>>);

impl Lists {
    /// Remembers an answer unless there is an earlier one.
    pub(super) fn remember(&self, key: String, answer: &Response<Bytes>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(|| answer.clone());
    }

    /// The first answer.
    pub(super) fn first(&self, key: &str) -> Option<Response<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

/// The same list is the same objects in the same form; which version of them the client asks for makes no other list.
pub(super) fn key(asked: &Asked, headers: &HeaderMap) -> String {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let of_the_version = ["resourceVersion=", "resourceVersionMatch=", "timeoutSeconds="];
    let mut pairs: Vec<&str> = asked.query.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.retain(|pair| !of_the_version.iter().any(|name| pair.starts_with(name)));
    pairs.sort_unstable();
    format!("{accept} {}?{}", asked.path, pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::super::asked::asked;
    use super::key;
    use http::HeaderMap;

    #[test]
    fn the_version_asked_for_makes_no_other_list() {
        let key = |uri: &str| key(&asked("GET", uri), &HeaderMap::new());
        assert_eq!(key("/api/v1/nodes?resourceVersion=0&limit=5"), key("/api/v1/nodes?limit=5"));
        assert_ne!(key("/api/v1/nodes?limit=5"), key("/api/v1/nodes?limit=6"));
        assert_ne!(key("/api/v1/nodes?limit=5&continue=x"), key("/api/v1/nodes?limit=5"));
    }
}

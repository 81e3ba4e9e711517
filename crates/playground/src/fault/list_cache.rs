//! The first response to every list, for the fault `stale`.

use super::lock;
use super::request_info::RequestInfo;
use bytes::Bytes;
use http::{HeaderMap, Response, header::ACCEPT};
use std::collections::HashMap;
use std::sync::Mutex;

#[derive(Default)]
pub(super) struct ListCache(Mutex<HashMap<String, Response<Bytes>>>);

impl ListCache {
    /// Stores a response unless there is an earlier one.
    pub(super) fn store(&self, key: String, response: &Response<Bytes>) {
        lock(&self.0).entry(key).or_insert_with(|| response.clone());
    }

    /// The first response.
    pub(super) fn first(&self, key: &str) -> Option<Response<Bytes>> {
        lock(&self.0).get(key).cloned()
    }
}

/// Identifies a list by its path, query and format, regardless of the requested resourceVersion.
pub(super) fn key(request: &RequestInfo, headers: &HeaderMap) -> String {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let ignored = ["resourceVersion=", "resourceVersionMatch=", "timeoutSeconds="];
    let mut pairs: Vec<&str> = request.query.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.retain(|pair| !ignored.iter().any(|name| pair.starts_with(name)));
    pairs.sort_unstable();
    format!("{accept} {}?{}", request.path, pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::super::request_info::request_info;
    use super::key;
    use http::HeaderMap;

    #[test]
    fn the_requested_version_does_not_change_the_key() {
        let key = |uri: &str| key(&request_info("GET", uri), &HeaderMap::new());
        assert_eq!(key("/api/v1/nodes?resourceVersion=0&limit=5"), key("/api/v1/nodes?limit=5"));
        assert_ne!(key("/api/v1/nodes?limit=5"), key("/api/v1/nodes?limit=6"));
        assert_ne!(key("/api/v1/nodes?limit=5&continue=x"), key("/api/v1/nodes?limit=5"));
    }
}

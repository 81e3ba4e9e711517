//! Records every request: in memory for the test, and as a line of JSON in a file.

use super::lock;
use super::request_info::RequestInfo;
use super::resource_version;
use crate::user_error::{self, UserError};
use jiff::Timestamp;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// One request. The user is in the audit log; headers are not recorded, so no token is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Its number in the order of arrival, counted from 1.
    pub seq: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// Its Kubernetes verb.
    pub verb: &'static str,
    /// Its path.
    pub path: String,
    /// Its query string as it was sent.
    pub query: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// Its field manager.
    pub field_manager: Option<String>,
    /// The resourceVersion in its query or its body.
    pub resource_version_in: Option<String>,
    /// The resourceVersion in the response; for a watch, that of the last forwarded event.
    pub resource_version_out: Option<String>,
    /// The HTTP status of the response, including the proxy's own; `None` before there is one.
    pub status: Option<u16>,
    /// The size of its body.
    pub bytes_in: u64,
    /// How many bytes of the response body were forwarded to the client.
    pub bytes_out: u64,
    /// How many events of a watch were forwarded to the client, without bookmarks.
    pub events: u64,
    /// How long it took; `None` while it is unfinished.
    pub latency_ms: Option<f64>,
    /// The fault that was injected.
    pub fault: Option<&'static str>,
}

/// All requests of a proxy.
pub(super) struct Records {
    lines: Mutex<Vec<Line>>,
    file: Mutex<File>,
}

impl Records {
    pub(super) fn create(path: &Path) -> Result<Arc<Records>, UserError> {
        let file = File::create(path).map_err(|error| user_error::io("write", path, error))?;
        Ok(Arc::new(Records { lines: Mutex::default(), file: Mutex::new(file) }))
    }

    pub(super) fn all(&self) -> Vec<Line> {
        lock(&self.lines).clone()
    }

    /// Starts the record of a request; dropping the returned value finishes it.
    pub(super) fn begin(self: &Arc<Records>, request: &RequestInfo, body: &[u8]) -> Recording {
        let parameter = |key| request.parameter(key).map(str::to_owned);
        let in_body = || if body.is_empty() { None } else { resource_version::of_object(body) };
        let mut lines = lock(&self.lines);
        let index = lines.len();
        lines.push(Line {
            seq: index as u64 + 1,
            at: Timestamp::now(),
            verb: request.verb,
            path: request.path.clone(),
            query: request.query.clone(),
            dry_run: request.parameter("dryRun").is_some(),
            field_manager: parameter("fieldManager"),
            resource_version_in: parameter("resourceVersion").or_else(in_body),
            resource_version_out: None,
            status: None,
            bytes_in: body.len() as u64,
            bytes_out: 0,
            events: 0,
            latency_ms: None,
            fault: None,
        });
        Recording { records: Arc::clone(self), index, started: Instant::now() }
    }
}

/// The record of an unfinished request; it is finished when this is dropped.
pub(super) struct Recording {
    records: Arc<Records>,
    index: usize,
    started: Instant,
}

impl Recording {
    pub(super) fn seq(&self) -> u64 {
        self.index as u64 + 1
    }

    /// Changes the record.
    pub(super) fn update(&self, change: impl FnOnce(&mut Line)) {
        let mut lines = lock(&self.records.lines);
        if let Some(line) = lines.get_mut(self.index) {
            change(line);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed().as_secs_f64() * 1000.0;
        let mut written = String::new();
        self.update(|line| {
            line.latency_ms = Some((elapsed * 1000.0).round() / 1000.0);
            written = serde_json::to_string(line).unwrap_or_default() + "\n";
        });
        // The record is still in memory, and a full disk is reported by the control plane.
        let _ = lock(&self.records.file).write_all(written.as_bytes());
    }
}

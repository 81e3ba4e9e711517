//! One record of every request: in memory for the test, and as a line of JSON in a file.

use super::asked::Asked;
use super::version;
use crate::trouble::{self, Trouble};
use jiff::Timestamp;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One request. Whom it came from is in the audit log; no header is kept, so no token is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Its place in the order in which requests arrived, counted from 1.
    pub seq: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// Kubernetes' verb.
    pub verb: &'static str,
    /// Its path.
    pub path: String,
    /// Its query, as it was sent.
    pub query: String,
    /// Whether it only asked what would happen.
    pub dry_run: bool,
    /// In whose name it writes.
    pub field_manager: Option<String>,
    /// The version it asked for, or that its body carried.
    pub resource_version_in: Option<String>,
    /// The version the server answered with; for a watch, that of the last event forwarded.
    pub resource_version_out: Option<String>,
    /// The HTTP status of the answer, the proxy's own included; nothing while there is none.
    pub status: Option<u16>,
    /// The bytes of its body.
    pub bytes_in: u64,
    /// The bytes of the answer's body that were handed to the client.
    pub bytes_out: u64,
    /// The events of a watch that were handed to the client; bookmarks do not count.
    pub events: u64,
    /// How long it took; nothing while it is under way.
    pub latency_ms: Option<f64>,
    /// What went wrong with it on purpose.
    pub fault: Option<&'static str>,
}

/// All requests of one proxy.
pub(super) struct Records {
    lines: Mutex<Vec<Line>>,
    file: Mutex<File>,
}

impl Records {
    pub(super) fn create(path: &Path) -> Result<Arc<Records>, Trouble> {
        let file = File::create(path).map_err(|error| trouble::io("write", path, error))?;
        Ok(Arc::new(Records { lines: Mutex::default(), file: Mutex::new(file) }))
    }

    pub(super) fn all(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins a record: it ends with the value that is returned.
    pub(super) fn begin(self: &Arc<Records>, asked: &Asked, body: &[u8]) -> Recording {
        let parameter = |key| asked.parameter(key).map(str::to_owned);
        let carried = || if body.is_empty() { None } else { version::of_object(body) };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let index = lines.len();
        lines.push(Line {
            seq: index as u64 + 1,
            at: Timestamp::now(),
            verb: asked.verb,
            path: asked.path.clone(),
            query: asked.query.clone(),
            dry_run: asked.parameter("dryRun").is_some(),
            field_manager: parameter("fieldManager"),
            resource_version_in: parameter("resourceVersion").or_else(carried),
            resource_version_out: None,
            status: None,
            bytes_in: body.len() as u64,
            bytes_out: 0,
            events: 0,
            latency_ms: None,
            fault: None,
        });
        Recording { records: Arc::clone(self), index, begun: Instant::now() }
    }
}

/// The record of a request under way; it is complete when this is dropped.
pub(super) struct Recording {
    records: Arc<Records>,
    index: usize,
    begun: Instant,
}

impl Recording {
    pub(super) fn seq(&self) -> u64 {
        self.index as u64 + 1
    }

    /// Adds what became known.
    pub(super) fn note(&self, change: impl FnOnce(&mut Line)) {
        let mut lines = self.records.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(self.index) {
            change(line);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let elapsed = self.begun.elapsed().as_secs_f64() * 1000.0;
        let mut written = String::new();
        self.note(|line| {
            line.latency_ms = Some((elapsed * 1000.0).round() / 1000.0);
            written = serde_json::to_string(line).unwrap_or_default() + "\n";
        });
        // The test still has it in memory; a full disk is told by the control plane soon enough.
        let _ = self.records.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(written.as_bytes());
    }
}

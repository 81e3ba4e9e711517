//! Errors shown to the user: what failed, why, and how to fix it.

use std::error::Error;
use std::fmt;

/// A failure reported to the user together with its fix.
#[derive(Debug)]
pub struct UserError {
    message: String,
    detail: Option<String>,
    fix: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl UserError {
    /// An error with its message and its fix.
    pub fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        UserError { message: message.into(), detail: None, fix: fix.into(), source: None }
    }

    /// Adds the output of the tool that failed, verbatim.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        self.detail = (!detail.trim().is_empty()).then(|| detail.trim().to_owned());
        self
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The error in one line, without its fix.
    pub fn summary(&self) -> String {
        let mut line = self.cause();
        if let Some(detail) = self.detail.as_ref().and_then(|detail| detail.lines().next()) {
            // Of a failed request only the answer: the rest repeats the source and its address.
            let is_request = detail.contains(": reading http");
            let detail = if is_request { detail.rsplit(": ").next().unwrap_or(detail) } else { detail };
            line.push_str(": ");
            line.push_str(detail.trim());
        }
        line
    }

    fn cause(&self) -> String {
        let mut text = self.message.clone();
        let mut source = self.source.as_ref().map(|source| source.as_ref() as &dyn Error);
        while let Some(error) = source {
            text.push_str(&format!(": {error}"));
            source = error.source();
        }
        text
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause())?;
        for line in self.detail.iter().flat_map(|detail| detail.lines()) {
            write!(f, "\n  | {line}")?;
        }
        write!(f, "\n  fix: {}", self.fix)
    }
}

impl Error for UserError {}

/// Describes an I/O error on a path; a full disk gets its own message and fix.
pub fn io(attempt: &str, path: &std::path::Path, error: std::io::Error) -> UserError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return disk_full(path);
    }
    UserError::new(
        format!("could not {attempt} {}", path.display()),
        "check the path and its permissions, then run again",
    )
    .with_source(error)
}

/// The error for a full disk.
pub fn disk_full(path: &std::path::Path) -> UserError {
    UserError::new(
        format!("the disk that holds {} is full", path.display()),
        "free some space (a first build needs about 5 GB in Go's caches and 0.5 GB in VIRTPILOT_CACHE) or point VIRTPILOT_CACHE, \
         GOCACHE, GOMODCACHE or TMPDIR to a larger disk; the next run continues from what is already built",
    )
}

/// The error for a request of the demo or a benchmark that should have succeeded.
pub fn refused(error: &kube::Error) -> UserError {
    UserError::new("the API server refused a request", "this is a bug, please report it")
        .with_detail(server_message(error))
}

/// The message of an API error, without the rest of the Status.
pub fn server_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::UserError;

    #[test]
    fn a_summary_is_one_line_with_the_cause() {
        let error = || UserError::new("what", "fix");
        assert_eq!(error().summary(), "what");
        let failed = std::io::Error::other("why");
        assert_eq!(error().with_source(failed).with_detail("first\nsecond").summary(), "what: why: first");
        let request = "go: m: reading https://host/m/@v/list: 403 Forbidden";
        assert_eq!(error().with_detail(request).summary(), "what: 403 Forbidden");
    }
}

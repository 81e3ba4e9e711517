//! What a person is told when something cannot go on: what, why, and how to fix it.

use std::error::Error;
use std::fmt;

/// A failure worth telling a person about, with its remedy.
#[derive(Debug)]
pub struct Trouble {
    what: String,
    because: Option<String>,
    remedy: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Trouble {
    /// Says what could not be done and how to get on.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Trouble { what: what.into(), because: None, remedy: remedy.into(), source: None }
    }

    /// Adds the words of the tool that failed, as they were.
    #[must_use]
    pub fn because(mut self, words: impl Into<String>) -> Self {
        let words = words.into();
        self.because = (!words.trim().is_empty()).then(|| words.trim().to_owned());
        self
    }

    /// Adds the error underneath.
    #[must_use]
    pub fn from(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        let mut source = self.source.as_ref().map(|source| source.as_ref() as &dyn Error);
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        for line in self.because.iter().flat_map(|words| words.lines()) {
            write!(f, "\n  | {line}")?;
        }
        write!(f, "\n  fix: {}", self.remedy)
    }
}

impl Error for Trouble {}

/// Turns an I/O error on a path into words; a full disk gets its own remedy.
pub fn io(attempt: &str, path: &std::path::Path, error: std::io::Error) -> Trouble {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return disk_full(path);
    }
    Trouble::new(
        format!("could not {attempt} {}", path.display()),
        "check the path and its permissions, then run again",
    )
    .from(error)
}

/// The one message about a full disk, wherever it was noticed.
pub fn disk_full(path: &std::path::Path) -> Trouble {
    Trouble::new(
        format!("the disk that holds {} is full", path.display()),
        "free some space (a first build needs about 5 GB in Go's caches and 0.5 GB in ours) or point VIRTPILOT_CACHE, \
         GOCACHE, GOMODCACHE or TMPDIR to a larger disk; what is already built is kept and the next run continues",
    )
}

/// The API server's own words, without the rest of its answer.
pub fn server_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

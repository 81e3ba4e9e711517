//! What was asked, in the order of arrival.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One request. It has no parameters and no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it arrived, since the start.
    pub at: Duration,
    /// Its method.
    pub method: String,
    /// Its path below that of the API, decoded.
    pub path: String,
    /// The code of the answer; nothing if it got none.
    pub status: Option<u16>,
}

/// All requests.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Vec<Line>>);

impl Records {
    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, line: Line) {
        self.lines().push(line);
    }

    pub(crate) fn all(&self) -> Vec<Line> {
        self.lines().clone()
    }

    pub(crate) fn count(&self, is_wanted: impl Fn(&Line) -> bool) -> usize {
        self.lines().iter().filter(|line| is_wanted(line)).count()
    }

    pub(crate) fn clear(&self) {
        self.lines().clear();
    }
}

//! A fault of a pack and its location.

use std::fmt;

/// One fault of a pack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, relative to the root of the pack.
    pub file: String,
    /// The line, counted from one, if it is known.
    pub line: Option<usize>,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

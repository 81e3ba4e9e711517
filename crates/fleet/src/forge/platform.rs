//! Which CI platform it is.

use serde::{Deserialize, Serialize};

/// A CI platform.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Platform {
    /// GitHub.
    #[default]
    GitHub,
    /// GitLab.
    GitLab,
}

impl Platform {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Platform::GitHub => "GitHub",
            Platform::GitLab => "GitLab",
        }
    }

    /// The one whose API begins at this address.
    pub fn of_api(api: &str) -> Platform {
        if api.ends_with("/api/v4") { Platform::GitLab } else { Platform::GitHub }
    }

    /// Whether it is GitHub.
    pub fn is_github(&self) -> bool {
        *self == Platform::GitHub
    }
}

//! A version of a runner program.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Three numbers, such as `2.329.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version([u32; 3]);

impl Version {
    /// From three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version([major, minor, patch])
    }

    /// Reads `2.329.0`, also with a leading `v`.
    pub fn read(text: &str) -> Option<Version> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(Version(numbers))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        Version::read(&text).ok_or_else(|| format!("{text:?} is no version such as 2.329.0"))
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(Version::read("2.99.0") < Version::read("v2.329.0"));
        for wrong in ["", "2.329", "2.329.0.1", "2.x.0", "2.329.0-rc1", "2.-1.0"] {
            assert_eq!(Version::read(wrong), None, "{wrong}");
        }
        let json = serde_json::to_string(&Version::new(2, 329, 0)).unwrap();
        assert_eq!(
            (json.as_str(), serde_json::from_str::<Version>(&json).unwrap()),
            ("\"2.329.0\"", Version::new(2, 329, 0))
        );
    }
}

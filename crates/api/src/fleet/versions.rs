//! What the status of a `RunnerPool` remembers of runner versions.

use super::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The runner versions of a pool. What is here survives a restart of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerVersions {
    /// Where the versions are offered, and for which architecture; for another one nothing of this counts.
    #[serde(default)]
    pub of: String,
    /// The version that has proved itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Claims whose runner GitHub has refused although its version had proved itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The version that is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<RunnerCanary>,
    /// Versions that were rolled back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rolled_back: Vec<RolledBackVersion>,
    /// The version that a person has asked to try again, once that was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<String>,
    /// Versions that were offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<RunnerRelease>,
}

/// A version that is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerCanary {
    /// The version.
    pub version: String,
    /// Since when.
    pub since: Time,
    /// The uids of claims whose machine ran a job with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worked: Vec<String>,
    /// The uids of claims that failed with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// A version that was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolledBackVersion {
    /// The version.
    pub version: String,
    /// When.
    pub time: Time,
    /// Why.
    pub message: String,
}

/// A version that was offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerRelease {
    /// The version.
    pub version: String,
    /// When it was offered first, as far as the fleet knows.
    pub since: Time,
    /// Where its archive is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The SHA-256 of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

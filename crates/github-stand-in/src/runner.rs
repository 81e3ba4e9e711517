//! Runners and runner groups.

use crate::names::{RepositoryName, Scope};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// A registered runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Runner {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whose jobs it runs.
    pub scope: Scope,
    /// The id of its group.
    pub group: u64,
    /// All its labels.
    pub labels: Vec<String>,
    /// The system, `unknown` before it was online.
    pub os: String,
    /// Whether GitHub thinks that it is there.
    pub is_online: bool,
    /// The job that it runs.
    pub job: Option<u64>,
    /// Whether it ends after one job.
    pub is_ephemeral: bool,
    /// The scale set that it belongs to.
    pub scale_set: Option<u64>,
    /// When it was registered.
    pub created: Duration,
    /// Its version, once it was online.
    pub version: Option<String>,
    /// Whether its machine is dead, which GitHub does not know.
    pub is_lost: bool,
    /// Since when it is in this state, online or offline.
    pub(crate) since: Duration,
    /// What it was configured with, if it is just in time.
    pub(crate) jit: Option<String>,
    /// Whether it was online.
    pub(crate) is_used: bool,
}

impl Runner {
    /// Whether it can start a job now.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_online && self.job.is_none()
    }

    /// Whether it has all labels of a job.
    pub(crate) fn has_labels(&self, wanted: &[String]) -> bool {
        contains_all(&self.labels, wanted)
    }

    pub(crate) fn json(&self) -> Value {
        let labels: Vec<Value> = self.labels.iter().enumerate().map(|(at, name)| label(at, name)).collect();
        json!({
            "id": self.id,
            "runner_group_id": self.group,
            "name": self.name,
            "os": self.os,
            "status": if self.is_online { "online" } else { "offline" },
            "busy": self.job.is_some(),
            "ephemeral": self.is_ephemeral,
            "labels": labels,
        })
    }
}

fn label(at: usize, name: &str) -> Value {
    let is_given = ["self-hosted", "linux", "x64", "arm64", "windows", "macos"].contains(&name.to_lowercase().as_str());
    json!({"id": at + 1, "name": name, "type": if is_given { "read-only" } else { "custom" }})
}

/// Whether every wanted label is there; case does not matter.
pub(crate) fn contains_all(labels: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|wanted| labels.iter().any(|label| label.eq_ignore_ascii_case(wanted)))
}

/// A runner that somebody else registers, with `config.sh` and a registration token.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerSpec {
    /// Whose jobs it runs.
    pub scope: Scope,
    /// Its name.
    pub name: String,
    /// All its labels.
    pub labels: Vec<String>,
    /// Whether it ends after one job.
    pub is_ephemeral: bool,
}

/// Runners with the same rules.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerGroup {
    /// Its id, unique in its scope.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The only repositories that it serves; all if nothing is given.
    pub repositories: Option<BTreeSet<RepositoryName>>,
    /// Whether it also serves repositories that everybody can see.
    pub allows_public: bool,
}

impl RunnerGroup {
    pub(crate) fn default_group() -> RunnerGroup {
        RunnerGroup { id: 1, name: "Default".to_owned(), repositories: None, allows_public: false }
    }

    pub(crate) fn serves(&self, repository: &RepositoryName, is_public: bool) -> bool {
        let is_selected = self.repositories.as_ref().is_none_or(|selected| selected.contains(repository));
        is_selected && (self.allows_public || !is_public)
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "visibility": if self.repositories.is_some() { "selected" } else { "all" },
            "default": self.id == 1,
            "selected_repositories_url": format!("{path}/actions/runner-groups/{}/repositories", self.id),
            "runners_url": format!("{path}/actions/runner-groups/{}/runners", self.id),
            "inherited": false,
            "allows_public_repositories": self.allows_public,
            "restricted_to_workflows": false,
            "selected_workflows": [],
            "workflow_restrictions_read_only": false,
        })
    }
}

/// The configuration of a runner as `run.sh --jitconfig` takes it: files, each in base64, in an object that is in base64 itself.
pub(crate) fn jit_config(runner: &Runner, address: &str, secret: &str) -> String {
    let settings = json!({
        "AgentId": runner.id.to_string(),
        "AgentName": runner.name,
        "DisableUpdate": "True",
        "Ephemeral": "True",
        "PoolId": runner.group.to_string(),
        "PoolName": null,
        "ServerUrl": format!("{address}/_services/pipelines/"),
        "WorkFolder": "_work",
        "GitHubUrl": format!("{address}/{}", runner.scope.path()),
        "UseV2Flow": "True",
    });
    let credentials = json!({
        "Scheme": "OAuth",
        "Data": {
            "ClientId": secret,
            "AuthorizationUrl": format!("{address}/_services/vstoken/_apis/oauth2/token"),
            "RequireFipsCryptography": "True",
        },
    });
    let files = json!({
        ".runner": STANDARD.encode(settings.to_string()),
        ".credentials": STANDARD.encode(credentials.to_string()),
        ".credentials_rsaparams": STANDARD.encode(json!({"d": secret, "exponent": "AQAB"}).to_string()),
    });
    STANDARD.encode(files.to_string())
}

/// The secret in the configuration of a runner.
pub(crate) fn secret_of_jit_config(config: &str) -> Option<String> {
    let read = |text: &str| serde_json::from_slice::<Value>(&STANDARD.decode(text).ok()?).ok();
    let credentials = read(read(config)?[".credentials"].as_str()?)?;
    Some(credentials["Data"]["ClientId"].as_str()?.to_owned())
}

/// Whether a version is at least another one; what cannot be read is old.
pub(crate) fn is_at_least(version: &str, minimum: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> { text.split('.').map(|part| part.parse().unwrap_or(0)).collect() };
    numbers(version) >= numbers(minimum)
}

//! Asks the Go module proxy for the newest version of a module.

use super::super::modules::Modules;
use super::decide::{Newest, judge};
use super::version::pseudo_time;
use crate::user_error::UserError;
use serde::Deserialize;

/// The fields used of the output of `go list -m -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    version: String,
    time: Option<String>,
    #[serde(default)]
    retracted: Vec<String>,
}

/// The newest version of a module: what the proxy serves as the latest, or for a pinned commit the default branch.
pub(super) async fn of_module(modules: &Modules, module: &str, pinned: &str) -> Newest {
    let latest = match list(modules, module, "latest", &[]).await {
        Ok(listed) => judge(pinned, &listed.version, listed.time.as_deref()),
        Err(error) => Newest::Unknown { why: error.summary() },
    };
    if pseudo_time(pinned).is_none() || matches!(latest, Newest::Pinned | Newest::Newer(_)) {
        return latest;
    }
    match list(modules, module, "HEAD", &[]).await {
        Ok(listed) => judge(pinned, &listed.version, listed.time.as_deref()),
        Err(error) => match latest {
            Newest::Unsuitable { version, why } => {
                Newest::Unknown { why: format!("{version} {why}, and for the default branch {}", error.summary()) }
            }
            other => other,
        },
    }
}

/// Why the authors of a module withdrew a version; `None` also if the proxy does not tell.
pub(super) async fn retraction(modules: &Modules, module: &str, version: &str) -> Option<String> {
    let listed = list(modules, module, version, &["-retracted"]).await.ok()?;
    (!listed.retracted.is_empty()).then(|| listed.retracted.join(", "))
}

async fn list(modules: &Modules, module: &str, query: &str, options: &[&str]) -> Result<Listed, UserError> {
    let wanted = format!("{module}@{query}");
    let args: Vec<&str> =
        ["list", "-m", "-json"].into_iter().chain(options.iter().copied()).chain([wanted.as_str()]).collect();
    let output = modules.output(&args).await?;
    serde_json::from_str(&output).map_err(|error| {
        UserError::new(format!("go did not report the version of {wanted}"), "run again").with_source(error)
    })
}

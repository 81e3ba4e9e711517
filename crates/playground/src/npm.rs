//! Installs a script for Node.js and the packages that it needs.

use crate::files;
use crate::process::{Output, Start, run_to_end};
use crate::user_error::{self, UserError};
use std::path::Path;

/// A script that becomes `client.mjs`, beside its packages.
pub(crate) struct Script<'a> {
    pub(crate) package: &'a str,
    pub(crate) package_lock: &'a str,
    pub(crate) text: &'a str,
    /// Where the checksums are, for messages.
    pub(crate) pinned_in: &'a str,
}

impl Script<'_> {
    /// npm verifies the checksums of the lock file.
    pub(crate) async fn install(&self, npm: &Path, folder: &Path) -> Result<(), UserError> {
        files::write(&folder.join("package.json"), self.package)?;
        files::write(&folder.join("package-lock.json"), self.package_lock)?;
        let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
        let start = Start {
            name: "npm".into(),
            program: npm.to_owned(),
            args: args.map(str::to_owned).to_vec(),
            env: Vec::new(),
            folder: folder.to_owned(),
            output: Output::Lines,
        };
        let mut printed = Vec::new();
        let end = run_to_end(start, |text, _| printed.push(text.to_owned())).await?;
        end.map_err(|status| explain(&printed, &status, folder, self.pinned_in))?;
        files::write(&folder.join("client.mjs"), self.text)
    }
}

/// Finds the cause of a failure in npm's output.
fn explain(printed: &[String], status: &str, folder: &Path, pinned_in: &str) -> UserError {
    let has = |pattern: &str| printed.iter().any(|line| line.contains(pattern));
    let tail = printed.iter().rev().take(6).rev().cloned().collect::<Vec<_>>().join("\n");
    if has("ENOSPC") {
        user_error::disk_full(folder)
    } else if has("EINTEGRITY") {
        UserError::new(
            format!("a package of npm does not match its checksum in {pinned_in}"),
            "do not trust that download: if you edited the checksum, restore it; otherwise run `npm cache clean --force`, run again, and \
             report the mismatch if it persists",
        )
        .with_detail(tail)
    } else {
        UserError::new(format!("npm ended with {status}"), "check the network and the registry of npm, and run again")
            .with_detail(tail)
    }
}

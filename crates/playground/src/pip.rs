//! Runs pip for one package and turns its errors into messages with a fix.

use crate::files;
use crate::go::which;
use crate::process::{Output, Start, run_to_end};
use crate::user_error::{self, UserError};
use std::path::Path;

/// A package to download.
pub(crate) struct Package<'a> {
    /// Name and version, for messages.
    pub(crate) what: &'a str,
    /// A line of a requirements file; with a hash, no other archive is accepted.
    pub(crate) requirement: &'a str,
    /// The file that pins it, for messages.
    pub(crate) pinned_in: &'a str,
}

impl Package<'_> {
    /// Runs `pip ARGS` in a folder, for this package alone.
    pub(crate) async fn run(&self, args: &[&str], folder: &Path) -> Result<(), UserError> {
        let python = which("python3").ok_or_else(|| {
            UserError::new(
                format!("python3 is not installed, and it is needed to download {}", self.what),
                "install Python 3 with pip",
            )
        })?;
        files::write(&folder.join("requirements.txt"), self.requirement)?;
        let pip = ["-m", "pip"].into_iter().chain(args.iter().copied());
        let hashes = self.requirement.contains("--hash").then_some("--require-hashes");
        let requirement = ["--quiet", "--no-deps", "-r", "requirements.txt"].into_iter().chain(hashes);
        let start = Start {
            name: "pip".into(),
            program: python,
            args: pip.chain(requirement).map(str::to_owned).collect(),
            env: vec![
                ("PIP_DISABLE_PIP_VERSION_CHECK".into(), "1".into()),
                ("PYTHONPATH".into(), folder.display().to_string()),
            ],
            folder: folder.to_owned(),
            output: Output::Lines,
        };
        let mut printed = Vec::new();
        let end = run_to_end(start, |text, _| printed.push(text.to_owned())).await?;
        end.map_err(|status| self.explain(&printed, &status, folder))
    }

    pub(crate) fn wrong_checksum(&self) -> UserError {
        UserError::new(
            format!("{} does not match its sha256 in {}", self.what, self.pinned_in),
            "do not trust that download: if you edited the sha256, restore it; otherwise run `pip cache purge`, run again, and \
             report the mismatch if it persists",
        )
    }

    /// Finds the cause of a failure in pip's output.
    fn explain(&self, printed: &[String], status: &str, folder: &Path) -> UserError {
        let has = |pattern: &str| printed.iter().any(|line| line.contains(pattern));
        let tail = printed.iter().rev().take(6).rev().cloned().collect::<Vec<_>>().join("\n");
        if has("No space left on device") {
            user_error::disk_full(folder)
        } else if has("DO NOT MATCH THE HASHES") {
            self.wrong_checksum().with_detail(tail)
        } else if has("No module named pip") {
            UserError::new("python3 has no pip", "install pip (Debian: `apt-get install python3-pip`) and run again")
        } else if has("No matching distribution") || has("403 ") || has("404 ") {
            UserError::new(
                format!("the Python package index does not have {}", self.what),
                format!("check PIP_INDEX_URL, or pin another version with its sha256 in {}", self.pinned_in),
            )
            .with_detail(tail)
        } else {
            UserError::new(
                format!("pip ended with {status}"),
                "check the network and run again; downloaded packages are kept",
            )
            .with_detail(tail)
        }
    }
}

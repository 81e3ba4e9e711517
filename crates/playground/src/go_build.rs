//! Builds pinned Go programs into a folder and shows how far it is.

use crate::files;
use crate::go::{Go, OutputLine};
use crate::progress::Progress;
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Programs of one module.
pub(crate) struct GoBuild<'a> {
    /// As it is shown: "building TITLE".
    pub(crate) title: &'a str,
    /// What is built, for messages.
    pub(crate) names: &'a str,
    /// Completes the message that Go is missing.
    pub(crate) purpose: &'a str,
    pub(crate) go_mod: &'a str,
    pub(crate) go_sum: &'a str,
    /// The source of a program of our own, or empty.
    pub(crate) main_go: &'a str,
    pub(crate) packages: &'a [&'a str],
    /// Build tags, separated by commas.
    pub(crate) tags: &'a str,
    pub(crate) linker_flags: &'a str,
}

impl GoBuild<'_> {
    /// Downloads the modules that the packages need, and builds them; returns the folder with the programs, inside of `staging`.
    pub(crate) async fn run(&self, staging: &Path, progress: Progress) -> Result<PathBuf, UserError> {
        files::write(&staging.join("go.mod"), self.go_mod)?;
        files::write(&staging.join("go.sum"), self.go_sum)?;
        if !self.main_go.is_empty() {
            files::write(&staging.join("main.go"), self.main_go)?;
        }
        let go = Go::find(staging, self.purpose)?;

        let mut step = progress.step(format!("Go modules of {}", self.title));
        let (mut fetched, mut total) = (0, 0);
        // It downloads what is needed to know the packages, and nothing else.
        let list = ["list", "-deps", "-tags", self.tags];
        go.run(&[&list, self.packages].concat(), |line| match line {
            OutputLine::Out(_) => total += 1,
            OutputLine::Err(text) if text.starts_with("go: downloading ") => {
                fetched += 1;
                step.update(format_args!("{fetched} downloaded"));
            }
            OutputLine::Err(_) => {}
        })
        .await?;
        step.done(format_args!("{fetched} downloaded"));

        let mut step = progress.step(format!("building {}", self.title));
        step.message(format_args!("{}; takes several minutes the first time", self.names));
        let output = staging.join("out");
        std::fs::create_dir(&output).map_err(|error| user_error::io("create", &output, error))?;
        let target = format!("{}/", output.display());
        let command = ["build", "-v", "-trimpath", "-tags", self.tags, "-ldflags", self.linker_flags, "-o", &target];
        let started = Instant::now();
        let mut compiled = 0;
        go.run(&[&command, self.packages].concat(), |line| {
            if let OutputLine::Err(package) = line {
                compiled += 1;
                step.update(format_args!(
                    "{compiled} of at most {total} packages ({} s), {package}",
                    started.elapsed().as_secs()
                ));
            }
        })
        .await?;
        step.done(format_args!("{compiled} packages compiled"));
        Ok(output)
    }
}

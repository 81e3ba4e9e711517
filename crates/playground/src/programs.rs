//! Programs that are built from a pinned Go module, and kept in the cache.

use crate::cache::{Cache, Key};
use crate::go_build::GoBuild;
use crate::progress::Progress;
use crate::user_error::{self, UserError};
use std::path::PathBuf;

/// Part of the cache key; increase it when the build changes.
const FORMAT_VERSION: &str = "1";

/// A program and its Go package.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    /// The file name that `go build` gives it.
    pub(crate) built_as: &'static str,
}

/// The programs of one module.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    /// The kind of its entry in the cache.
    pub(crate) kind: &'static str,
    /// What the programs are, for reports: "the control plane".
    pub(crate) what: &'static str,
    pub(crate) go_mod: &'a str,
    pub(crate) go_sum: &'a str,
    /// The source of a program of our own, whose package is "."; empty if all come from other modules.
    pub(crate) main_go: &'a str,
    /// Build tags, separated by commas.
    pub(crate) tags: &'static str,
    pub(crate) linker_flags: String,
    pub(crate) programs: &'static [Program],
    /// A folder whose programs are used instead of building them.
    pub(crate) prebuilt: Option<PathBuf>,
    /// Ends the message that Go is missing: how a build can be avoided.
    pub(crate) instead: &'static str,
}

impl Module<'_> {
    /// The paths of all programs, in their order; missing ones are built.
    pub(crate) async fn ensure(&self, cache: &Cache, progress: Progress) -> Result<Vec<PathBuf>, UserError> {
        let more = [self.tags, self.main_go].into_iter().filter(|text| !text.is_empty());
        let key = Key::of([FORMAT_VERSION, self.go_mod, self.go_sum].into_iter().chain(more));
        let built = cache.entry(self.kind, &key);
        let locate = |name: &str| {
            let found = self.prebuilt.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            found.or_else(|| Some(built.join(name)).filter(|path| path.is_file()))
        };
        let missing = || self.programs.iter().filter(|program| locate(program.name).is_none()).collect::<Vec<_>>();
        if !missing().is_empty() {
            let mut step = progress.step(self.what.trim_start_matches("the "));
            let _lock =
                cache.lock(self.kind, &key, || step.message("waiting for another run that is building it")).await?;
            // The previous holder of the lock may have built them.
            let missing = missing();
            if !missing.is_empty() {
                self.build(&missing, cache, &key, progress).await?;
            }
        }
        let find = |program: &Program| {
            locate(program.name).ok_or_else(|| {
                UserError::new(
                    format!("{} was built but is no longer in {}", program.name, built.display()),
                    "another process removes files from that folder; run again",
                )
            })
        };
        self.programs.iter().map(find).collect()
    }

    async fn build(
        &self,
        programs: &[&Program],
        cache: &Cache,
        key: &Key,
        progress: Progress,
    ) -> Result<(), UserError> {
        let names = programs.iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
        let staging = cache.staging_folder(self.kind)?;
        let packages: Vec<&str> = programs.iter().map(|program| program.package).collect();
        let build = GoBuild {
            title: self.what,
            names: &names,
            purpose: &format!("to build {names}{}", self.instead),
            go_mod: self.go_mod,
            go_sum: self.go_sum,
            main_go: self.main_go,
            packages: &packages,
            tags: self.tags,
            linker_flags: &self.linker_flags,
        };
        let output = build.run(staging.path(), progress).await?;
        for program in programs {
            let built = output.join(program.built_as);
            std::fs::rename(&built, staging.path().join(program.name))
                .map_err(|error| user_error::io("find the built", &built, error))?;
        }
        // An earlier build of fewer programs may exist: its programs are kept.
        let entry = cache.entry(self.kind, key);
        if entry.is_dir() {
            for program in programs {
                let path = entry.join(program.name);
                std::fs::rename(staging.path().join(program.name), &path)
                    .map_err(|error| user_error::io("install", &path, error))?;
            }
            return Ok(());
        }
        std::fs::remove_dir_all(&output).map_err(|error| user_error::io("remove", &output, error))?;
        cache.install(staging, self.kind, key).map(|_| ())
    }
}

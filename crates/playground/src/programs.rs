//! Programs that are built from a pinned Go module, and kept in the cache.

use crate::cache::{Cache, Key};
use crate::files;
use crate::go::{Go, OutputLine};
use crate::progress::Progress;
use crate::user_error::{self, UserError};
use std::path::PathBuf;
use std::time::Instant;

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
    pub(crate) linker_flags: String,
    pub(crate) programs: &'static [Program],
    /// A folder whose programs are used instead of building them.
    pub(crate) prebuilt: Option<PathBuf>,
}

impl Module<'_> {
    /// The paths of all programs, in their order; missing ones are built.
    pub(crate) async fn ensure(&self, cache: &Cache, progress: Progress) -> Result<Vec<PathBuf>, UserError> {
        let key = Key::of([FORMAT_VERSION, self.go_mod, self.go_sum]);
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
        files::write(&staging.path().join("go.mod"), self.go_mod)?;
        files::write(&staging.path().join("go.sum"), self.go_sum)?;
        let go = Go::find(staging.path(), &format!("to build {names} (KUBEBUILDER_ASSETS does not have them)"))?;

        let mut step = progress.step(format!("Go modules of {}", self.what));
        let mut fetched = 0;
        go.run(&["mod", "download", "-x"], |line| {
            if let OutputLine::Err(text) = line
                && text.contains(".zip: 200")
            {
                fetched += 1;
                step.update(format_args!("{fetched} downloaded"));
            }
        })
        .await?;
        step.done(format_args!("{fetched} downloaded"));

        let packages: Vec<&str> = programs.iter().map(|program| program.package).collect();
        let mut total = 0;
        go.run(&[&["list", "-deps"], &packages[..]].concat(), |_| total += 1).await?;

        let mut step = progress.step(format!("building {}", self.what));
        step.message(format_args!("{names}; takes several minutes the first time"));
        let output = staging.path().join("out");
        std::fs::create_dir(&output).map_err(|error| user_error::io("create", &output, error))?;
        let target = format!("{}/", output.display());
        let command = ["build", "-v", "-trimpath", "-ldflags", &self.linker_flags, "-o", &target];
        let started = Instant::now();
        let mut compiled = 0;
        go.run(&[&command, &packages[..]].concat(), |line| {
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

//! The workspace as reported by Cargo and Git.

use anyhow::{Context, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace on disk.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Every package of the build graph, including dependencies.
    pub(crate) packages: Vec<Package>,
    /// Tracked and new files relative to the root, without those Git ignores.
    pub(crate) files: Vec<String>,
}

/// A package in the output of `cargo metadata`.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A declared dependency.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) path: Option<PathBuf>,
}

/// A build target.
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Workspace {
    pub(crate) fn load() -> anyhow::Result<Workspace> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).context("xtask is not two folders below the workspace root")?.to_owned();
        let metadata = output(&root, "cargo", &["metadata", "--format-version=1", "--locked"])?;
        let metadata: Metadata =
            serde_json::from_str(&metadata).context("could not parse the output of cargo metadata")?;
        let files = output(&root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
        let files = files.lines().filter(|file| root.join(file).is_file()).map(str::to_owned).collect();
        Ok(Workspace { root, packages: metadata.packages, files })
    }

    /// The packages of this workspace.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }

    /// Reads a file by its path from the root.
    pub(crate) fn read(&self, path: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(self.root.join(path)).with_context(|| format!("could not read {path}"))
    }

    /// The files with this suffix.
    pub(crate) fn files_ending<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.iter().map(String::as_str).filter(move |file| file.ends_with(suffix))
    }

    /// The violations that a check finds in the files with this suffix.
    pub(crate) fn check_files(
        &self,
        suffix: &str,
        check: impl Fn(&str, &str) -> Vec<String>,
    ) -> anyhow::Result<Vec<String>> {
        let mut violations = Vec::new();
        for path in self.files_ending(suffix) {
            violations.extend(check(path, &self.read(path)?));
        }
        Ok(violations)
    }

    /// The normal dependencies of a package, one per line.
    pub(crate) fn normal_tree(&self, package: &str) -> anyhow::Result<String> {
        let args = ["tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}", "--package", package];
        output(&self.root, "cargo", &args)
    }
}

/// Runs a program and returns its standard output.
pub(crate) fn output(root: &Path, program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).current_dir(root).output();
    let output = output.with_context(|| format!("could not run {program}: is it installed?"))?;
    if !output.status.success() {
        bail!("{program} {} failed:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {program} is not UTF-8"))
}

//! What Cargo and Git know of this workspace.

use anyhow::{Context, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace on disk.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Every package of the build graph, ours and others'.
    pub(crate) packages: Vec<Package>,
    /// Tracked and new files, relative to the root; those Git ignores are not ours.
    pub(crate) files: Vec<String>,
}

/// One package, as `cargo metadata` tells it.
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
    /// Nothing for a normal one, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) path: Option<PathBuf>,
}

/// Something Cargo builds.
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
        let root = here.ancestors().nth(2).context("xtask is not two folders below the workspace")?.to_owned();
        let metadata = output(&root, "cargo", &["metadata", "--format-version=1", "--locked"])?;
        let metadata: Metadata = serde_json::from_str(&metadata).context("could not read what cargo metadata says")?;
        let files = output(&root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
        let files = files.lines().filter(|file| root.join(file).is_file()).map(str::to_owned).collect();
        Ok(Workspace { root, packages: metadata.packages, files })
    }

    /// Our own packages: those that come from no registry.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }

    /// A file's text by its path from the root.
    pub(crate) fn read(&self, path: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(self.root.join(path)).with_context(|| format!("could not read {path}"))
    }

    /// Our files with this ending.
    pub(crate) fn files_ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.iter().map(String::as_str).filter(move |file| file.ends_with(ending))
    }

    /// What only this package needs in a normal build, one `name` per line.
    pub(crate) fn normal_tree(&self, package: &str) -> anyhow::Result<String> {
        let args = ["tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}", "--package", package];
        output(&self.root, "cargo", &args)
    }
}

/// Runs a program to its end and returns what it printed.
fn output(root: &Path, program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).current_dir(root).output();
    let output = output.with_context(|| format!("could not run {program}: is it installed?"))?;
    if !output.status.success() {
        bail!("{program} {} failed:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed something that is not text"))
}

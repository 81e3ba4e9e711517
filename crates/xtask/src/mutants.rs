//! Changes the THINK crates in small ways, one at a time, as cargo-mutants proposes, and reports the changes that no test notices.
//!
//! cargo-mutants builds the tests once for each mutant, which takes hours. Here one program contains nearly all mutants of a crate.

mod build;
mod equivalent;
mod functions;
mod mutant;
mod program;
mod report;
mod rewrite;
mod trial;

use crate::layers::{LAYERS, Role};
use crate::workspace::Workspace;
use anyhow::{Context, bail};
use build::Copy;
use equivalent::Equivalents;
use mutant::Mutant;
use report::Report;
use std::path::Path;
use std::process::{Command, Stdio};
use trial::Trial;

/// Tests the mutants that this cargo-mutants lists, builds them below a folder, and prints what was found. The arguments select some of
/// them, such as `--package change` or `--file reads.rs`.
pub(crate) fn run(program: &str, folder: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    let packages = think_crates(&workspace);
    // From here on the workspace may change.
    let copy = Copy::of(&workspace, &Path::new(folder).join("mutants"))?;
    let equivalents = Equivalents::parse(&copy.read(equivalent::FILE)?)?;
    let all = list(program, &copy.root, &packages, &[])?;
    equivalents.check(&all)?;
    let is_package = |argument: &&str| ["-p", "--package"].iter().any(|option| argument.starts_with(option));
    let among = if arguments.iter().any(is_package) { &[] } else { packages.as_slice() };
    let selected = list(program, &copy.root, among, arguments)?;
    let mut tested = Vec::new();
    for package in packages {
        let mutants: Vec<&Mutant> = selected.iter().filter(|mutant| mutant.package == package).collect();
        if !mutants.is_empty() {
            tested.extend(Trial::new(package, &copy, mutants)?.run()?);
        }
    }
    let report = Report::of(&all, &tested, &equivalents);
    print!("{report}");
    report.check()
}

/// The mutants of these packages, or those that the arguments select.
fn list(program: &str, root: &Path, packages: &[&str], arguments: &[&str]) -> anyhow::Result<Vec<Mutant>> {
    let mut command = Command::new(program);
    command.args(["mutants", "--list", "--json"]).args(packages.iter().flat_map(|name| ["--package", name]));
    let listed = command.args(arguments).current_dir(root).stderr(Stdio::inherit()).output();
    let listed = listed.with_context(|| format!("could not run {program}"))?;
    if !listed.status.success() {
        bail!("{program} failed to list mutants");
    }
    serde_json::from_slice(&listed.stdout).context("could not parse the list of cargo-mutants")
}

fn think_crates(workspace: &Workspace) -> Vec<&'static str> {
    let exists = |name: &str| workspace.own().any(|package| package.name == name);
    LAYERS.iter().filter(|layer| layer.role == Role::Think && exists(layer.name)).map(|layer| layer.name).collect()
}

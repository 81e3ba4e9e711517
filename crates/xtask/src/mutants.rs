//! Changes the THINK crates in small ways, one at a time, with cargo-mutants, and reports the changes that no test notices.

mod equivalent;
mod mutant;
mod report;

use crate::layers::{LAYERS, Role};
use crate::workspace::Workspace;
use anyhow::{Context, bail};
use equivalent::Equivalents;
use mutant::{Mutant, Outcomes};
use report::Report;
use std::path::Path;
use std::process::{Command, Stdio};

/// Few cases for each property test, and always the same ones: a mutant that only other cases find needs a test of its own.
const PROPERTY_TESTS: [(&str, &str); 2] = [("PROPTEST_CASES", "16"), ("PROPTEST_RNG_SEED", "1")];
/// What cargo-mutants exits with if it tested all mutants: all caught, some missed, some with a timeout.
const TESTED: [i32; 3] = [0, 2, 3];

/// Runs this cargo-mutants with these arguments, writes its logs to a folder, and prints what was found. All THINK crates are tested unless
/// the arguments name a package.
pub(crate) fn run(program: &str, folder: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    let equivalents = Equivalents::parse(&workspace.read(equivalent::FILE)?)?;
    let all = think_crates(&workspace);
    let listed = command(program, &workspace.root, &all).args(["--list", "--json"]).stderr(Stdio::inherit()).output();
    let listed = listed.with_context(|| format!("could not run {program}"))?;
    let mutants: Vec<Mutant> =
        serde_json::from_slice(&listed.stdout).context("could not parse the list of cargo-mutants")?;
    equivalents.check(&mutants)?;
    let is_package = |argument: &&str| ["-p", "--package"].iter().any(|option| argument.starts_with(option));
    let packages = if arguments.iter().any(is_package) { &[] } else { all.as_slice() };
    let mut tests = command(program, &workspace.root, packages);
    let status = tests.args(["--output", folder]).args(arguments).status().context("could not run cargo-mutants")?;
    if !status.code().is_some_and(|code| TESTED.contains(&code)) {
        bail!("cargo-mutants failed; its logs are in {folder}/mutants.out");
    }
    let outcomes = Path::new(folder).join("mutants.out/outcomes.json");
    let outcomes = std::fs::read(&outcomes).with_context(|| format!("could not read {}", outcomes.display()))?;
    let outcomes: Outcomes = serde_json::from_slice(&outcomes).context("could not parse the outcomes")?;
    let report = Report::of(&mutants, &outcomes.tested(), &equivalents);
    print!("{report}");
    report.check()
}

fn command(program: &str, root: &Path, packages: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("mutants").args(packages.iter().flat_map(|name| ["--package", name])).current_dir(root);
    // Mutants are built in a copy of the sources, in a target folder of its own.
    command.envs(PROPERTY_TESTS).env_remove("CARGO_TARGET_DIR");
    command
}

fn think_crates(workspace: &Workspace) -> Vec<&'static str> {
    let exists = |name: &str| workspace.own().any(|package| package.name == name);
    LAYERS.iter().filter(|layer| layer.role == Role::Think && exists(layer.name)).map(|layer| layer.name).collect()
}

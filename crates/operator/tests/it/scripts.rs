//! The shell scripts of assets, linted, and run with simulated machines.

use crate::node_files;
use playground::cache::Cache;
use playground::tools::Tools;
use playground::{Progress, UserError, shellcheck};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a script of tests, whose last line says how many passed.
fn run(script: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("sh");
    command.arg(folder.join("tests/scripts").join(script)).env("JOBS", "8");
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.trim_end().lines().last().unwrap_or_default().ends_with(" passed, 0 failed"), "{stdout}");
}

#[test]
fn scripts_of_nodes_do_their_arithmetic_and_nothing_else() {
    run("run.sh");
}

#[test]
fn the_shutdown_of_a_host_waits_for_its_virtual_machines_and_never_too_long() {
    run("drain/run.sh");
}

/// The commands of `sh -c '...'` in a unit.
fn inline_scripts(unit: &str) -> impl Iterator<Item = &str> {
    unit.lines().filter_map(|line| line.split_once("sh -c '")?.1.strip_suffix('\''))
}

#[tokio::test]
async fn shellcheck_finds_nothing_in_the_scripts_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let mut scripts: BTreeMap<String, String> = BTreeMap::new();
    for machine_config in node_files::all() {
        let files = machine_config.files.into_iter().filter(|(_, (text, _))| text.starts_with("#!"));
        scripts.extend(files.map(|(path, (text, _))| (path.trim_start_matches('/').replace('/', "-"), text)));
        for (name, unit) in &machine_config.units {
            let inline = inline_scripts(unit).map(|script| format!("#!/bin/sh\n{script}\n"));
            scripts.extend(inline.enumerate().map(|(index, script)| (format!("{name}-{index}"), script)));
            assert_eq!(
                unit.matches("sh -c").count(),
                inline_scripts(unit).count(),
                "{name} has an unknown form of sh -c"
            );
        }
    }
    for (name, script) in &scripts {
        std::fs::write(folder.path().join(name), script).unwrap();
    }
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/active/scripts");
    for entry in std::fs::read_dir(assets).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(scripts.values().any(|script| *script == text), "no MachineConfig has {}", path.display());
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let program: Result<PathBuf, UserError> =
        async { shellcheck::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    let mut command = Command::new(program.unwrap_or_else(|error| panic!("{error}")));
    // Settings of the user must not count.
    command.arg("--norc").env_remove("SHELLCHECK_OPTS").args(scripts.keys()).current_dir(folder.path());
    let output = command.args([own.join("run.sh"), own.join("drain/run.sh")]).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    println!("shellcheck: {} scripts without a finding", scripts.len() + 2);
}

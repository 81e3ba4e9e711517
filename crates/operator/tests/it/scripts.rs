//! The shell scripts of assets, run with simulated machines.

use std::path::Path;
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

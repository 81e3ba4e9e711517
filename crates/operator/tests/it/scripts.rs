//! The shell scripts of assets, run with simulated machines.

use std::process::Command;

#[test]
fn scripts_of_the_swap_asset_do_their_arithmetic_and_nothing_else() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let output =
        Command::new("sh").arg(folder.join("tests/scripts/run.sh")).arg(folder.join("../../assets")).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.trim_end().lines().last().unwrap_or_default().ends_with(" passed, 0 failed"), "{stdout}");
}

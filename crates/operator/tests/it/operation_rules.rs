//! The expressions of the rules for operations in flight, evaluated by the CEL of Kubernetes.

use std::path::Path;
use std::process::Command;

#[test]
fn every_rule_matches_its_object_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("sh");
    command.arg(root.join("tools/observability/operations.sh")).env("VIRTPILOT", env!("CARGO_BIN_EXE_virtpilot"));
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
}

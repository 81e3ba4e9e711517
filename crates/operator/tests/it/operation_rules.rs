//! The expressions of the rules for operations in flight, evaluated by the CEL of Kubernetes.

use crate::catalogue::all_of;
use std::path::Path;
use std::process::Command;

#[test]
fn every_rule_matches_its_object_and_no_other() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/observability");
    let folder = tempfile::tempdir().unwrap();
    let rendered = folder.path().join("rendered.yaml");
    let objects = all_of("OperationRuleSet").into_iter().map(|object| object.to_string());
    std::fs::write(&rendered, objects.collect::<Vec<_>>().join("\n---\n")).unwrap();
    let mut command = Command::new("go");
    command.args(["run", "."]).arg(&rendered).arg(tools.join("operations.yaml")).current_dir(tools.join("cel"));
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
}

//! `crds verify` and `crds update`, with registries made of files.

use crate::marked_process::{kill, run, start_until};
use crate::registry::{Registry, crd};
use expect_test::expect;
use rustix::process::Signal;

/// Two modules and the package, each pinned to its first version; the newest of `gone` has another file.
fn registry(test: &str) -> Registry {
    let registry = Registry::new(test);
    registry.serve_module("example.com/fine", "v1.0.0", "crd.yaml", &crd("fine.example.com", "string"), "");
    registry.serve_module("example.com/fine", "v1.1.0", "crd.yaml", &crd("fine.example.com", "integer"), "");
    registry.serve_module("example.com/fine", "v1.2.0-rc.1", "crd.yaml", &crd("fine.example.com", "boolean"), "");
    registry.serve_module("example.com/gone", "v1.0.0", "crd.yaml", &crd("gone.example.com", "string"), "");
    let retract = "retract v1.0.0 // the wrong file";
    registry.serve_module("example.com/gone", "v1.1.0", "new.yaml", &crd("gone.example.com", "string"), retract);
    registry.serve_module("example.com/refused", "v1.0.0", "crd.yaml", &crd("refused.example.com", "string"), "");
    registry.serve_module("example.com/refused", "v1.1.0", "crd.yaml", &crd("refused.example.com", "text"), "");
    let sha256 = registry.serve_package("1.0.9", "string");
    let modules =
        ["fine", "gone", "refused"].map(|name| (format!("example.com/{name}"), format!("{name}.example.com")));
    let modules = modules.each_ref().map(|(module, group)| (module.as_str(), "v1.0.0", group.as_str()));
    registry.pin(&modules, Some(("1.0.9", &sha256)));
    registry.serve_package("1.0.10", "integer");
    registry
}

#[test]
fn verify_reports_and_changes_nothing() {
    let registry = registry("pins-verify");
    let before = registry.pins();
    let output = registry.run("verify");
    assert_eq!(output.code, Some(0), "{}", output.err);
    expect![[r#"
        source               pinned  newest  result
        example.com/fine     v1.0.0  v1.1.0  stale; v1.1.0 loads
        example.com/gone     v1.0.0  v1.1.0  stale; v1.1.0 does not load: example.com/gone@v1.1.0 no longer contains crd.yaml; the pinned version is retracted: the wrong file
        example.com/refused  v1.0.0  v1.1.0  stale; v1.1.0 does not load: the API server rejects things.refused.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[field].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"
        example-wrapper      1.0.9   1.0.10  stale; 1.0.10 loads
    "#]].assert_eq(&output.out);
    assert_eq!(registry.pins(), before);
    // Without its file in the proxy and in the cache, a source no longer loads.
    registry.serve_no_modules();
    registry.forget_downloads();
    let output = registry.run("verify");
    assert_eq!(output.code, Some(1), "{}", output.err);
    let line = output.out.lines().find(|line| line.starts_with("example.com/fine")).unwrap_or_default();
    assert!(line.contains("v1.0.0  ?       no longer loads: "), "{}", output.out);
    let broken = "error: these sources of third-party CRDs do not load: example.com/fine, example.com/gone, example.com/refused\n";
    assert!(output.err.contains(broken), "{}", output.err);
    assert_eq!(registry.pins(), before);
}

#[test]
fn update_moves_every_pin_whose_newest_version_loads() {
    let registry = registry("pins-update");
    let before = registry.pins();
    let output = registry.run("update");
    assert_eq!(output.code, Some(0), "{}", output.err);
    let out = output.out.replace(&registry.tools().display().to_string(), "TOOLS");
    expect![[r#"
        source               pinned  newest  result
        example.com/fine     v1.0.0  v1.1.0  updated
        example.com/gone     v1.0.0  v1.1.0  kept; v1.1.0 does not load: example.com/gone@v1.1.0 no longer contains crd.yaml; the pinned version is retracted: the wrong file
        example.com/refused  v1.0.0  v1.1.0  kept; v1.1.0 does not load: the API server rejects things.refused.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[field].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"
        example-wrapper      1.0.9   1.0.10  updated
        moved 2 of 4 pins in TOOLS/crds; now run `cargo xtask gen` and `make test`
    "#]].assert_eq(&out);
    let after = registry.pins();
    assert_eq!(after.keys().collect::<Vec<_>>(), ["crds.toml", "go.mod", "go.sum"], "no other file is left");
    assert_eq!(after["go.mod"], before["go.mod"].replace("fine v1.0.0", "fine v1.1.0"));
    let table = &after["crds.toml"];
    let changed: Vec<&str> = table.lines().filter(|line| !before["crds.toml"].contains(line)).collect();
    assert!(matches!(changed[..], ["version = \"1.0.10\"", sha256] if sha256.starts_with("sha256 = ")), "{table}");
    assert_eq!(after["go.sum"].matches("example.com/fine v1.1.0").count(), 2, "{}", after["go.sum"]);
    // Go and pip accept the new checksums, and a proxy that refuses changes nothing.
    registry.download_again();
    let output = run(registry.crds("update").env("GOPROXY", "off"));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let refused = "example.com/fine     v1.1.0  ?       kept; the newest version is unknown: the Go module proxy refused a module";
    assert!(output.out.contains(refused) && output.out.ends_with("no pin was moved\n"), "{}", output.out);
    assert_eq!(registry.pins(), after);
    registry.expect_no_process();
}

#[test]
fn an_interrupted_update_changes_nothing() {
    let registry = registry("update-interrupted");
    let before = registry.pins();
    let (mut child, _, rest) = start_until(&mut registry.crds("update"), "sources of third-party CRDs");
    kill(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", rest.join().unwrap());
    assert_eq!(registry.pins(), before);
    registry.expect_no_process();
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_before_any_work() {
    let registry = registry("update-read-only");
    let before = registry.pins();
    let tools = registry.tools();
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && exec \"$2\" crds update";
    let mut command = std::process::Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&tools);
    let output = run(command.arg(env!("CARGO_BIN_EXE_virtpilot-playground")).env("VIRTPILOT_TOOLS", &tools));
    assert_eq!(output.code, Some(1), "{}", output.err);
    assert!(output.err.starts_with("error: ") && output.err.contains("cannot be written"), "{}", output.err);
    assert_eq!(registry.pins(), before);
}

#[test]
fn update_needs_a_checkout() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_virtpilot-playground"));
    let output = run(command.args(["crds", "update"]).current_dir(elsewhere.path()).env_remove("VIRTPILOT_TOOLS"));
    assert_eq!(output.code, Some(1), "{}", output.err);
    assert!(output.err.contains("run this in a checkout, or name its folder `tools` with --tools"), "{}", output.err);
}

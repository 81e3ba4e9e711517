//! No event, log line or status shows a secret value.

use super::{HOUR, PLAIN, config_map, started};
use crate::testing::bed::TestBed;
use crate::testing::pack::{self, Pack};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// The secret.
const MARKER: &str = "hunter2";

/// Checks everything that is reported, and the status after it.
fn check(bed: &mut TestBed, reported: &str, expected: &Expect) {
    let status = bed.status();
    assert!(!reported.contains(MARKER) && !status.contains(MARKER), "{reported}{status}");
    expected.assert_eq(reported);
}

#[test]
fn an_adoption_shows_benign_values_and_redacts_the_others() {
    let template = pack::config_map("settings", "data: {level: \"1\", db-password: ours, url: 'http://a/', conf: a}");
    let mut bed = TestBed::of(Pack::default().asset("settings", "install: always", &template));
    let url = format!("https://me:{MARKER}@host/");
    let data = json!({"level": "7", "db-password": MARKER, "url": url, "conf": format!("token={MARKER}")});
    bed.create("person", &config_map("settings", &data));
    let reported = bed.advance(HOUR);
    check(
        &mut bed,
        &reported,
        &expect![[r#"
        back up ConfigMap virt/settings
        apply ConfigMap virt/settings
        notice Adopted ConfigMap virt/settings: adopted; a backup of the object as it was is kept. Changed: .data.conf (redacted), .data.db-password (redacted), .data.level ("7" -> "1"), .data.url (redacted)
    "#]],
    );
}

#[test]
fn an_approval_shows_no_file_of_a_machine_config() {
    let machine_config = |text: &str, argument: &str| -> Value {
        let files = json!([{"path": "/etc/a", "contents": {"source": format!("data:,{text}")}}]);
        let users = json!([{"name": "core", "passwordHash": text}]);
        let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": files}, "passwd": {"users": users}});
        let metadata = json!({"name": "kernel", "labels": {"machineconfiguration.openshift.io/role": "worker"}});
        json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": metadata,
            "spec": {"config": config, "kernelArguments": [argument]}})
    };
    let template = machine_config("ours", "quiet").to_string();
    let mut bed = TestBed::of(Pack::default().asset("kernel", "install: always", &template));
    bed.create("person", &machine_config(MARKER, "debug"));
    let reported = bed.advance(HOUR);
    check(
        &mut bed,
        &reported,
        &expect![[r#"
            record ConfigMap virt/virt-platform-autopilot-state
            notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.config.passwd.users (redacted), .spec.config.storage.files ([{"contents":"(redacted)","path":"/etc/a... -> [{"contents":"(redacted)","path":"/etc/a...), .spec.kernelArguments[0] ("debug" -> "quiet")
        "#]],
    );
}

#[test]
fn a_recreation_shows_no_secret_of_a_dropped_patch() {
    let patch = format!(
        r#"patch=[{{"op":"add","path":"/data/level","value":"5"}},{{"op":"add","path":"/data/token","value":"{MARKER}"}}]"#
    );
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, &patch);
    bed.settle();
    bed.delete(PLAIN);
    let reported = bed.settle();
    check(
        &mut bed,
        &reported,
        &expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated, without its overrides: platform.kubevirt.io/patch: [{"op":"add","path":"/data/level","value":"5"},{"op":"add","path":"/data/token","value":"(redacted)"}]
    "#]],
    );
}

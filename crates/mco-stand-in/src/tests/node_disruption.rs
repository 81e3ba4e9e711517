//! What a change does to a node, with the documented policy and with a user's.

use super::{Run, file_spec, seconds};
use crate::{Disruption, disruption_between};
use serde_json::{Value, json};

fn files(paths: &[&str]) -> Value {
    let files: Vec<Value> = paths.iter().map(|path| json!({"path": path, "contents": {"source": "data:,x"}})).collect();
    json!({"spec": {"config": {"storage": {"files": files}}}})
}

fn unit(name: &str) -> Value {
    json!({"spec": {"config": {"systemd": {"units": [{"name": name, "enabled": true}]}}}})
}

#[test]
fn the_documented_policy_decides_what_a_change_does() {
    let key = json!({"spec": {"config": {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k"]}]}}}});
    let cases: [(Value, Disruption); 18] = [
        (json!({"spec": {}}), Disruption::None),
        (files(&["/etc/example"]), Disruption::Restart),
        (files(&["/etc/mco/internal-registry-pull-secret.json"]), Disruption::None),
        (files(&["/var/lib/kubelet/config.json"]), Disruption::None),
        (files(&["/etc/machine-config-daemon/no-reboot/containers-gpg.pub"]), Disruption::None),
        (files(&["/etc/containers/policy.json"]), Disruption::None),
        (files(&["/etc/containers/registries.conf"]), Disruption::Drain),
        (files(&["/etc/containers/registries.d/a.yaml"]), Disruption::None),
        (files(&["/etc/containers/registries.dx"]), Disruption::Restart),
        (files(&["/etc/crio/policies/a.json"]), Disruption::None),
        (files(&["/etc/nmstate/openshift/a.yml"]), Disruption::None),
        (files(&["/etc/containers/policy.json", "/etc/example"]), Disruption::Restart),
        (files(&["/etc/containers/policy.json", "/etc/containers/registries.conf"]), Disruption::Drain),
        (unit("a.service"), Disruption::Restart),
        (key, Disruption::None),
        (json!({"spec": {"kernelArguments": ["nosmt"]}}), Disruption::Restart),
        (json!({"spec": {"osImageURL": "x"}}), Disruption::Restart),
        (json!({"spec": {"extensions": ["usbguard"]}}), Disruption::Restart),
    ];
    for (change, expected) in cases {
        let nothing = json!({"spec": {"kernelArguments": [], "osImageURL": ""}});
        assert_eq!(disruption_between(&nothing, &change, &Value::Null), Ok(expected), "{change} is added");
        assert_eq!(disruption_between(&change, &nothing, &Value::Null), Ok(expected), "{change} is removed");
        assert_eq!(disruption_between(&change, &change, &Value::Null), Ok(Disruption::None), "{change} stays");
    }
}

#[test]
fn a_users_policy_has_precedence_and_the_longest_path_wins() {
    let action = |kind: &str| json!([{"type": kind}]);
    let policy = json!({
        "files": [
            {"path": "/etc/mine", "actions": action("None")},
            {"path": "/etc/mine/but-not-this", "actions": action("Reboot")},
            {"path": "/etc/drained", "actions": action("Drain")},
            {"path": "/etc/containers/policy.json", "actions": action("Reboot")},
            {"path": "/etc/many", "actions": [{"type": "DaemonReload"}, {"type": "Restart"}, {"type": "Drain"}]},
        ],
        "units": [{"name": "a.service", "actions": [{"type": "DaemonReload"}, {"type": "Reload"}]}],
        "sshkey": {"actions": action("Reboot")},
    });
    let key = json!({"spec": {"config": {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k"]}]}}}});
    for (change, expected) in [
        (files(&["/etc/mine"]), Disruption::None),
        (files(&["/etc/mine/a"]), Disruption::None),
        (files(&["/etc/mine/but-not-this"]), Disruption::Restart),
        (files(&["/etc/minefield"]), Disruption::Restart),
        (files(&["/etc/drained"]), Disruption::Drain),
        (files(&["/etc/containers/policy.json"]), Disruption::Restart),
        (files(&["/etc/many"]), Disruption::Drain),
        (unit("a.service"), Disruption::None),
        (unit("b.service"), Disruption::Restart),
        (key, Disruption::Restart),
    ] {
        assert_eq!(disruption_between(&json!({"spec": {}}), &change, &policy), Ok(expected), "{change}");
    }
}

#[test]
fn a_change_that_needs_no_restart_is_rolled_out_without_one() {
    for (path, is_drained, time) in [
        ("/etc/containers/policy.json", false, 5),
        ("/etc/containers/registries.conf", true, 65),
        ("/etc/mine", false, 5),
    ] {
        let mut run = Run::with_workers(1);
        let policy = json!({"files": [{"path": "/etc/mine", "actions": [{"type": "None"}]}]});
        run.snapshot.machine_configuration = Some(json!({"spec": {"nodeDisruptionPolicy": policy}}));
        run.add("90-one", "worker", &file_spec(path, "1"));
        run.wait(seconds(5));
        let node = run.node("worker-0");
        assert_eq!((node.state(), node.0["spec"]["unschedulable"] == true), ("Working", is_drained), "{path}");
        run.wait(seconds(time - 1));
        assert_eq!(run.node("worker-0").state(), "Working", "{path}");
        run.wait(seconds(1));
        let node = run.node("worker-0");
        assert_eq!((node.state(), node.0["spec"]["unschedulable"] == true), ("Done", false), "{path}");
        run.finish();
        assert!(run.holds("worker", "Updated"));
        assert_eq!(run.restarts(), [0], "{path}");
        assert_eq!(run.node("worker-0").current(), run.target("worker"));
    }
}

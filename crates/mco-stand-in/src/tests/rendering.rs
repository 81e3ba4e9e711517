//! Rendered configurations: when, from what, and what happens with an invalid MachineConfig.

use super::{Run, file_spec, machine_config, pool, seconds};
use crate::{GENERATED_BY, render};
use serde_json::{Value, json};

fn file_of(rendered: &Value, path: &str) -> Value {
    let files = rendered["spec"]["config"]["storage"]["files"].as_array().cloned().unwrap_or_default();
    files.into_iter().find(|file| file["path"] == path).unwrap_or_default()
}

#[test]
fn a_change_is_rendered_after_the_render_delay_together_with_later_ones() {
    let mut run = Run::with_workers(1);
    let before = run.target("worker");
    run.add_file("90-one", "1");
    run.wait(seconds(3));
    run.add("91-two", "worker", &json!({"kernelArguments": ["nosmt"]}));
    run.wait(seconds(1));
    assert_eq!(run.target("worker"), before, "the delay of five seconds is not over");
    run.wait(seconds(1));
    let after = run.target("worker");
    assert_ne!(after, before);
    let names: Vec<&Value> = run.pool("worker")["spec"]["configuration"]["source"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["00-worker", "01-worker-kubelet", "90-one", "91-two"], "both changes are in one configuration");
    run.finish();
    assert_eq!(run.target("worker"), after);
    assert_eq!(run.restarts(), [1], "one restart for both");
}

#[test]
fn the_source_lists_what_went_in_and_the_rendered_machine_config_says_who_made_it() {
    let run = Run::with_workers(0);
    let configuration = &run.pool("worker")["spec"]["configuration"];
    let reference = |name: &str| json!({"apiVersion": crate::API_VERSION, "kind": "MachineConfig", "name": name});
    assert_eq!(configuration["source"], json!([reference("00-worker"), reference("01-worker-kubelet")]));
    let rendered = &run.snapshot.machine_configs[&run.target("worker")];
    assert_eq!(rendered["metadata"]["annotations"][GENERATED_BY], "stand-in");
    assert_eq!(rendered["metadata"]["ownerReferences"][0]["uid"], "uid-of-worker");
    assert!(rendered["metadata"]["labels"].is_null(), "no pool selects it");
}

#[test]
fn the_name_depends_on_the_content_and_on_nothing_else() {
    let mut run = Run::with_workers(1);
    let before = run.target("worker");
    run.add_file("90-one", "1");
    run.finish();
    let first = run.target("worker");
    assert!(first.starts_with("rendered-worker-") && first.len() == "rendered-worker-".len() + 32, "{first}");
    run.snapshot.machine_configs.remove("90-one");
    run.finish();
    assert_eq!(run.target("worker"), before, "the same content has the same name");
    run.add_file("95-another-name", "1");
    run.finish();
    assert_eq!(run.target("worker"), first);
    let source = run.pool("worker")["spec"]["configuration"]["source"][2]["name"].clone();
    assert_eq!(source, "95-another-name", "the source is listed anew");
    let keys = |text: &str| machine_config("a", "worker", &serde_json::from_str(text).unwrap());
    let pool = pool("worker", &["worker"]);
    let name = |config: Value| render(&pool, [&config]).unwrap().name().to_owned();
    assert_eq!(
        name(keys(r#"{"osImageURL": "x", "config": {"ignition": {"version": "3.5.0"}, "storage": {}}}"#)),
        name(keys(r#"{"config": {"storage": {}, "ignition": {"version": "3.5.0"}}, "osImageURL": "x"}"#)),
    );
}

#[test]
fn a_later_name_wins_and_lists_are_merged_by_their_keys() {
    let config = |config: Value| {
        let mut config = config;
        config["ignition"] = json!({"version": "3.2.0"});
        config
    };
    let first = machine_config(
        "10-a",
        "worker",
        &json!({
            "kernelArguments": ["a", "b"], "extensions": ["usbguard"], "osImageURL": "old",
            "config": config(json!({
                "storage": {"files": [
                    {"path": "/etc/a", "mode": 384, "contents": {"source": "data:,1", "compression": "gzip"}},
                    {"path": "/etc/b", "overwrite": false, "contents": {"source": "data:,2"}},
                ]},
                "systemd": {"units": [{"name": "x.service", "enabled": true, "dropins": [{"name": "1.conf", "contents": "1"}]}]},
                "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["one"]}]},
            })),
        }),
    );
    let second = machine_config(
        "20-b",
        "worker",
        &json!({
            "kernelArguments": ["b", "c"], "kernelType": "realtime", "fips": true, "osImageURL": "new",
            "config": config(json!({
                "storage": {"files": [{"path": "/etc/a", "contents": {"source": "data:,3"}}]},
                "systemd": {"units": [
                    {"name": "x.service", "dropins": [{"name": "2.conf", "contents": "2"}]}, {"name": "y.service"},
                ]},
                "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["one", "two"]}]},
            })),
        }),
    );
    // The order of the arguments does not matter.
    let rendered = render(&pool("worker", &["worker"]), [&second, &first]).unwrap().machine_config;
    let spec = &rendered["spec"];
    assert_eq!(spec["kernelArguments"], json!(["a", "b", "b", "c"]));
    assert_eq!((&spec["kernelType"], &spec["fips"]), (&json!("realtime"), &json!(true)));
    assert_eq!((&spec["osImageURL"], &spec["extensions"]), (&json!("new"), &json!(["usbguard"])));
    assert_eq!(
        file_of(&rendered, "/etc/a"),
        json!({"path": "/etc/a", "mode": 384, "overwrite": true, "contents": {"source": "data:,3"}})
    );
    assert_eq!(file_of(&rendered, "/etc/b")["overwrite"], false);
    assert_eq!(
        spec["config"]["systemd"]["units"],
        json!([
            {"name": "x.service", "enabled": true, "dropins": [{"name": "1.conf", "contents": "1"}, {"name": "2.conf", "contents": "2"}]},
            {"name": "y.service"},
        ])
    );
    assert_eq!(spec["config"]["passwd"]["users"][0]["sshAuthorizedKeys"], json!(["one", "two"]));
    assert_eq!(spec["config"]["ignition"]["version"], "3.5.0");
}

#[test]
fn a_custom_pool_gets_the_machine_configs_of_workers_and_its_own() {
    let mut run = Run::with_workers(1);
    run.snapshot.pools.insert("infra".into(), pool("infra", &["worker", "infra"]));
    run.add("90-infra", "infra", &file_spec("/etc/infra", "1"));
    run.finish();
    let source = &run.pool("infra")["spec"]["configuration"]["source"];
    let names: Vec<&Value> = source.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["00-worker", "01-worker-kubelet", "90-infra"]);
    assert_eq!(run.restarts(), [0], "the worker is not in that pool");
}

#[test]
fn bad_ignition_degrades_the_pool_changes_no_node_and_recovers_when_it_is_repaired() {
    let mut run = Run::with_workers(2);
    let before = run.target("worker");
    run.add("90-bad", "worker", &json!({"config": {"ignition": {"version": "9.9.9"}}}));
    run.add_file("91-good", "1");
    run.finish();
    assert_eq!(run.target("worker"), before);
    assert!(run.holds("worker", "RenderDegraded") && run.holds("worker", "Degraded"));
    assert!(!run.holds("worker", "NodeDegraded") && run.holds("worker", "Updated"));
    let message = run.condition("worker", "RenderDegraded")["message"].to_string();
    assert!(message.contains("machine config 90-bad contains invalid ignition config"), "{message}");
    assert!(!run.holds("master", "Degraded"), "the other pool does not select it");
    assert_eq!(run.restarts(), [0, 0]);
    run.add("90-bad", "worker", &file_spec("/etc/bad", "repaired"));
    run.finish();
    assert!(!run.holds("worker", "RenderDegraded") && !run.holds("worker", "Degraded"));
    assert_ne!(run.target("worker"), before);
    assert_eq!(run.restarts(), [1, 1]);
}

#[test]
fn a_pool_that_selects_no_machine_config_is_degraded() {
    let mut run = Run::with_workers(0);
    run.snapshot.pools.insert("empty".into(), pool("empty", &["empty"]));
    run.finish();
    assert!(run.holds("empty", "RenderDegraded"));
    assert_eq!(run.target("empty"), "");
}

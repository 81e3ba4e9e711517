//! Runners, groups and labels.

use super::Lab;
use crate::{JobSpec, RunnerGroup, RunnerRefusal, Scope};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;

const JIT: &str = "POST /orgs/acme/actions/runners/generate-jitconfig";

#[test]
fn a_jit_config_registers_an_offline_runner_with_exactly_its_labels() {
    let mut lab = Lab::new();
    let (id, jit) = lab.jit("vm-1", &["pve"]);
    let runner = lab.get(&format!("/orgs/acme/actions/runners/{id}"));
    assert_eq!(runner.at("/status"), "offline");
    assert_eq!(runner.at("/os"), "unknown");
    assert_eq!(runner.at("/busy"), false);
    assert_eq!(runner.at("/labels"), &json!([{"id": 1, "name": "pve", "type": "custom"}]));
    let files: Value = serde_json::from_slice(&STANDARD.decode(&jit).unwrap()).unwrap();
    let settings = STANDARD.decode(files[".runner"].as_str().unwrap()).unwrap();
    let settings: Value = serde_json::from_slice(&settings).unwrap();
    assert_eq!((settings["AgentName"].as_str(), settings["Ephemeral"].as_str()), (Some("vm-1"), Some("True")));
    assert!(files[".credentials"].is_string());
    lab.state.push_job(&JobSpec::new("acme/shop", &["self-hosted", "pve"]), lab.now);
    assert_eq!(lab.state.runner_online(&jit, lab.now), Ok(id));
    lab.pass(60_000);
    assert!(lab.state.executions().is_empty(), "self-hosted is not added");
}

#[test]
fn a_name_is_taken_until_its_runner_is_gone() {
    let mut lab = Lab::new();
    let (id, _) = lab.jit("vm-1", &["pve"]);
    let body = json!({"name": "VM-1", "runner_group_id": 1, "labels": ["pve"]});
    let taken = "409 Already exists - A runner with the name VM-1 already exists.";
    assert_eq!(lab.refused(JIT, body.clone()), taken);
    let repository = "POST /repos/acme/shop/actions/runners/generate-jitconfig";
    assert_eq!(lab.refused(repository, body.clone()), "201 ", "another owner");
    assert_eq!(lab.get("/orgs/acme/actions/runners").at("/total_count"), 1, "nor is it listed here");
    let line = format!("DELETE /orgs/acme/actions/runners/{id}");
    assert_eq!(lab.send(&line, Value::Null).status, 204);
    assert_eq!(lab.refused(&line, Value::Null), "404 Not Found");
    assert_eq!(lab.refused(JIT, body.clone()), "201 ");
    lab.pass(86_399_000);
    assert_eq!(lab.refused(JIT, body.clone()), taken);
    lab.pass(1000);
    assert_eq!(lab.refused(JIT, body), "201 ", "one that was never used is removed after a day");
}

#[test]
fn wrong_parameters_of_a_jit_config_are_named() {
    let mut lab = Lab::new();
    for (body, expected) in [
        (json!({}), "422 Invalid request.\n\n\"name\" wasn't supplied."),
        (json!({"name": "a"}), "422 Invalid request.\n\n\"labels\" wasn't supplied."),
        (json!({"name": "a", "labels": ["b"]}), "422 Invalid request.\n\n\"runner_group_id\" wasn't supplied."),
        (
            json!({"name": "a", "labels": [], "runner_group_id": 1}),
            "422 Invalid request.\n\nOnly 1 to 100 items are allowed in \"labels\".",
        ),
        (
            json!({"name": "a".repeat(65), "labels": ["b"], "runner_group_id": 1}),
            "422 Invalid request.\n\nOnly 1 to 64 characters are allowed in \"name\".",
        ),
        (json!({"name": "a", "labels": ["b"], "runner_group_id": 9}), "404 Not Found"),
    ] {
        assert_eq!(lab.refused(JIT, body), expected);
    }
    let response = lab.send(JIT, json!({}));
    let documentation = "https://docs.github.com/enterprise-server@3.21/rest/actions/self-hosted-runners";
    assert_eq!(response.at("/documentation_url"), documentation);
    assert_eq!(response.at("/status"), "422");
}

#[test]
fn a_busy_runner_is_not_deleted_and_an_ephemeral_one_goes_after_its_job() {
    let mut lab = Lab::new();
    let id = lab.online("vm-1", &["pve"]);
    let job = JobSpec::new("acme/shop", &["pve"]).lasting(Duration::from_secs(30));
    lab.state.push_job(&job, lab.now);
    lab.pass(1000);
    let line = format!("DELETE /orgs/acme/actions/runners/{id}");
    assert_eq!(lab.refused(&line, Value::Null), "422 Bad request - Runner \"vm-1\" is still running a job");
    assert_eq!(lab.get(&format!("/orgs/acme/actions/runners/{id}")).at("/busy"), true);
    lab.pass(30_000);
    assert_eq!(lab.get(&format!("/orgs/acme/actions/runners/{id}")).at("/status"), "offline");
    lab.pass(2000);
    assert_eq!(lab.refused(&line, Value::Null), "404 Not Found");
}

#[test]
fn a_jit_config_starts_one_runner_once_if_it_is_not_too_old() {
    let mut lab = Lab::new();
    let (id, jit) = lab.jit("vm-1", &["pve"]);
    let old = lab.state.runner_online_with(&jit, "2.311.0", lab.now);
    assert_eq!(old, Err(RunnerRefusal::TooOld { minimum: "2.329.0".to_owned() }));
    assert_eq!(lab.state.runner_online_with(&jit, "2.1000.0", lab.now), Ok(id));
    assert_eq!(lab.state.runner_online(&jit, lab.now), Err(RunnerRefusal::AlreadyUsed));
    assert_eq!(lab.state.runner_online("other", lab.now), Err(RunnerRefusal::NotRegistered));
    let (id, jit) = lab.jit("vm-2", &["pve"]);
    assert_eq!(lab.send(&format!("DELETE /orgs/acme/actions/runners/{id}"), Value::Null).status, 204);
    assert_eq!(lab.state.runner_online(&jit, lab.now), Err(RunnerRefusal::NotRegistered));
}

#[test]
fn lists_come_in_pages_with_links() {
    let mut lab = Lab::new();
    for number in 0..7 {
        lab.jit(&format!("vm-{number}"), &["pve"]);
    }
    let page = lab.get("/orgs/acme/actions/runners?per_page=3&page=2");
    assert_eq!(page.at("/total_count"), 7);
    assert_eq!(page.at("/runners/0/name"), "vm-3");
    let base = "<https://github.example/api/v3/orgs/acme/actions/runners?page=";
    let expected = format!(
        "{base}1&per_page=3>; rel=\"prev\", {base}3&per_page=3>; rel=\"next\", {base}3&per_page=3>; rel=\"last\", {base}1&per_page=3>; rel=\"first\""
    );
    assert_eq!(page.header("link"), Some(expected.as_str()));
    let last = lab.get("/orgs/acme/actions/runners?per_page=3&page=3");
    assert_eq!(last.at("/runners").as_array().unwrap().len(), 1);
    assert!(!last.header("link").unwrap().contains("next"));
    assert_eq!(lab.get("/orgs/acme/actions/runners").header("link"), None);
    for number in 7..120 {
        lab.jit(&format!("vm-{number}"), &["pve"]);
    }
    let most = lab.get("/orgs/acme/actions/runners?per_page=1000");
    assert_eq!(most.at("/runners").as_array().unwrap().len(), 100);
    assert_eq!(lab.get("/orgs/acme/actions/runners?name=vm-5").at("/total_count"), 1);
}

#[test]
fn a_list_may_lag_behind() {
    let mut lab = Lab::with(|setup| setup.timing.list_lag = Duration::from_secs(5));
    let (id, _) = lab.jit("vm-1", &["pve"]);
    assert_eq!(lab.get("/orgs/acme/actions/runners").at("/total_count"), 0);
    assert_eq!(lab.get(&format!("/orgs/acme/actions/runners/{id}")).at("/name"), "vm-1");
    lab.pass(5000);
    assert_eq!(lab.get("/orgs/acme/actions/runners").at("/total_count"), 1);
}

#[test]
fn a_group_serves_only_its_repositories_and_public_ones_only_if_it_may() {
    let mut lab = Lab::new();
    let scope = Scope::Organization("acme".to_owned());
    let shop = crate::RepositoryName::parse("acme/shop").unwrap();
    let group = RunnerGroup { id: 0, name: "Shop".to_owned(), repositories: Some([shop].into()), allows_public: false };
    let group = lab.state.add_group(&scope, group);
    let body = json!({"name": "vm-1", "runner_group_id": group, "labels": ["pve"]});
    let jit = lab.send(JIT, body).at("/encoded_jit_config").as_str().unwrap().to_owned();
    lab.state.runner_online(&jit, lab.now).unwrap();
    lab.online("vm-2", &["pve"]);
    let docs = lab.state.push_job(&JobSpec::new("acme/docs", &["pve"]), lab.now);
    let mut spec = JobSpec::new("acme/shop", &["pve"]);
    spec.group = Some("shop".to_owned());
    let shop = lab.state.push_job(&spec, lab.now);
    lab.pass(1000);
    assert!(lab.state.jobs()[&docs].is_queued(), "it is public");
    assert_eq!(lab.state.jobs()[&shop].ran_on().unwrap().name, "vm-1");
    assert_eq!(lab.state.jobs()[&shop].ran_on().unwrap().group_name, "Shop");
    assert_eq!(lab.get("/orgs/acme/actions/runner-groups").at("/total_count"), 2);
    let visible = lab.get("/orgs/acme/actions/runner-groups?visible_to_repository=site");
    assert_eq!(visible.at("/runner_groups/0/name"), "Default");
    assert_eq!(visible.at("/total_count"), 1);
    let members = lab.get(&format!("/orgs/acme/actions/runner-groups/{group}/runners"));
    assert_eq!(members.at("/runners/0/name"), "vm-1");
}

#[test]
fn labels_can_be_changed_but_those_of_the_system_stay() {
    let mut lab = Lab::new();
    let (id, _) = lab.jit("vm-1", &["self-hosted", "a"]);
    let line = |method: &str, rest: &str| format!("{method} /orgs/acme/actions/runners/{id}/labels{rest}");
    lab.send(&line("POST", ""), json!({"labels": ["b", "A"]}));
    assert_eq!(lab.state.runners()[&id].labels, ["self-hosted", "a", "b"]);
    lab.send(&line("PUT", ""), json!({"labels": ["c"]}));
    assert_eq!(lab.state.runners()[&id].labels, ["self-hosted", "c"]);
    assert_eq!(lab.refused(&line("DELETE", "/self-hosted"), Value::Null), "422 Validation Failed");
    assert_eq!(lab.refused(&line("DELETE", "/x"), Value::Null), "404 Not Found");
    assert_eq!(lab.send(&line("DELETE", "/c"), Value::Null).at("/total_count"), 1);
}

#[test]
fn an_archive_that_is_offered_has_the_checksum_that_is_said() {
    let mut lab = Lab::new();
    let listed = lab.get("/orgs/acme/actions/runners/downloads");
    let found = listed.body.unwrap();
    for item in found.as_array().unwrap() {
        let path = item["download_url"].as_str().unwrap().split_once("/_stand-in/").unwrap().1.to_owned();
        let archive = lab.get(&format!("/_stand-in/{path}")).body.unwrap().to_string();
        let sum = crate::hash::hex(&crate::hash::sha256(archive.as_bytes()));
        assert_eq!(item["sha256_checksum"], sum, "{path}");
        let other = lab.send(&format!("GET /_stand-in/{}", path.replace("/v", "/v9")), Value::Null);
        assert_eq!(other.status, 404);
    }
    assert_eq!(found.as_array().unwrap().len(), 2);
}

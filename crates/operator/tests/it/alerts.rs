//! The rules of alerts, checked and tested by promtool.

use crate::catalogue::all_of;
use playground::cache::Cache;
use playground::tools::Tools;
use playground::{Progress, UserError, promtool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs promtool once for every last argument, at the same time; panics with the output of one that fails.
pub(crate) async fn promtool(folder: &Path, arguments: &[&str], last: &[String]) {
    let program: Result<PathBuf, UserError> =
        async { promtool::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let start = |last: &String| {
        let mut command = Command::new(&program);
        command.args(arguments).arg(last).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = last.iter().map(start).collect();
    for (child, last) in children.into_iter().zip(last) {
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "promtool {} {last}:\n{text}", arguments.join(" "));
    }
}

/// The rules for an advisor without the autopilot: alerts of the catalogue, and one more.
fn of_advisor_alone() -> Vec<Value> {
    let of_catalogue = all_of("PrometheusRule");
    let named = |object: &&Value| object["metadata"]["name"] == "virt-platform-autopilot-alerts";
    let objects = install::advisor_monitoring("openshift-cnv", of_catalogue.iter().find(named).unwrap());
    let rule = objects.into_iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    below(&rule["spec"], "groups", "rules").into_iter().cloned().collect()
}

/// All rules: those of the catalogue, and those of the fleet.
pub(crate) fn rules() -> Vec<Value> {
    let fleet = install::fleet_monitoring(install::FLEET_NAMESPACE);
    all_of("PrometheusRule")
        .into_iter()
        .chain(fleet.into_iter().filter(|object| object["kind"] == "PrometheusRule"))
        .collect()
}

/// Every item of a list below a key, for all items of another list.
fn below<'a>(items: &'a Value, list: &str, key: &str) -> Vec<&'a Value> {
    let items = items[list].as_array().into_iter().flatten();
    items.flat_map(|item| item[key].as_array().into_iter().flatten()).collect()
}

/// The alerts that a file of tests says to fire, and those that it says not to.
fn expectations(tests: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for test in below(tests, "tests", "alert_rule_test") {
        let is_firing = test["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
        let names = if is_firing { &mut firing } else { &mut silent };
        names.insert(test["alertname"].as_str().unwrap().to_owned());
    }
    for test in below(tests, "tests", "promql_expr_test") {
        assert!(test["expr"].as_str().unwrap().contains("alertstate=\"firing\""), "not about alerts: {test}");
        for sample in test["exp_samples"].as_array().into_iter().flatten() {
            let labels = sample["labels"].as_str().unwrap();
            firing.insert(labels.split('"').nth(1).unwrap().to_owned());
        }
    }
    (firing, silent)
}

#[tokio::test]
async fn every_alert_fires_when_it_should_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    let mut alerts = Vec::new();
    for rule in rules() {
        let file = format!("{}.yaml", rule["metadata"]["name"].as_str().unwrap());
        // What is below spec is a rule file of Prometheus, and JSON is YAML.
        std::fs::write(folder.path().join(&file), rule["spec"].to_string()).unwrap();
        files.push(file);
        alerts.extend(below(&rule["spec"], "groups", "rules").into_iter().cloned());
    }
    assert_eq!(alerts.len(), 52, "rules");
    promtool(folder.path(), &["check", "rules"], &files).await;

    let (mut firing, mut silent, mut tests) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for entry in std::fs::read_dir(Path::new(ROOT).join("tools/observability")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".test.yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let (fires, is_silent) = expectations(&serde_saphyr::from_str(&text).unwrap());
            firing.extend(fires);
            silent.extend(is_silent);
            std::fs::write(folder.path().join(&name), text).unwrap();
            tests.push(name);
        }
    }
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        assert!(firing.contains(name), "no test in which {name} fires");
        if let Some(runbook) = alert["annotations"]["runbook"].as_str() {
            assert!(silent.contains(name), "no test in which {name} does not fire");
            let file = Path::new(ROOT).join(format!("docs/runbooks/{name}.md"));
            assert!(runbook.ends_with(&format!("/{name}.md")) && file.is_file(), "{name} has no runbook: {runbook}");
        }
    }
    promtool(folder.path(), &["test", "rules"], &tests).await;
}

/// Whoever runs the advisor by itself has each of its alerts, and is told when it does not run.
#[tokio::test]
async fn the_advisor_without_the_autopilot_has_its_alerts() {
    let names = |rules: &[Value]| -> BTreeSet<String> {
        rules.iter().map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<Value> = rules().iter().flat_map(|rule| below(&rule["spec"], "groups", "rules")).cloned().collect();
    let alone = of_advisor_alone();
    let mut expected: BTreeSet<String> =
        names(&all).into_iter().filter(|name| name.starts_with("VirtAdvisor")).collect();
    assert!(expected.len() >= 5, "{expected:?}");
    expected.insert("VirtAdvisorDown".to_owned());
    assert_eq!(names(&alone), expected);
    for alert in &alone {
        let (name, runbook) = (&alert["alert"], alert["annotations"]["runbook"].as_str().unwrap_or_default());
        assert!(Path::new(ROOT).join(runbook).is_file() && !runbook.is_empty(), "{name} has no runbook: {runbook:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let rules = serde_json::json!({"groups": [{"name": "advisor", "rules": alone}]});
    std::fs::write(folder.path().join("rules.yaml"), rules.to_string()).unwrap();
    promtool(folder.path(), &["check", "rules"], &["rules.yaml".to_owned()]).await;
    let description = alone.iter().find(|rule| rule["alert"] == "VirtAdvisorDown").unwrap();
    let annotations = &description["annotations"];
    let case = |series: serde_json::Value, alerts: serde_json::Value| {
        serde_json::json!({"interval": "1m", "input_series": series,
            "alert_rule_test": [{"eval_time": "20m", "alertname": "VirtAdvisorDown", "exp_alerts": alerts}]})
    };
    let up =
        |value: &str| serde_json::json!([{"series": "up{job=\"virt-advisor-operator-metrics\"}", "values": value}]);
    let labels = &description["labels"];
    let fires = serde_json::json!([{"exp_labels": labels, "exp_annotations": annotations}]);
    let tests = serde_json::json!({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [
        case(up("1x30"), serde_json::json!([])), case(up("0x30"), fires.clone()), case(serde_json::json!([]), fires),
    ]});
    std::fs::write(folder.path().join("tests.yaml"), tests.to_string()).unwrap();
    promtool(folder.path(), &["test", "rules"], &["tests.yaml".to_owned()]).await;
}

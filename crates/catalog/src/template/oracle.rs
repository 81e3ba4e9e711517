//! Compares every function with Go: the cases are in `tests-data/functions.yaml`, Go's output in `functions.go.json`.

use super::budget::RenderBudget;
use super::functions;
use super::gzipped::Gzipped;
use super::last_yaml::LastYaml;
use super::run::{RenderContext, run};
use super::{Parsed, Value};
use crate::cluster::facts::Facts;
use crate::pack::files::Files;
use crate::yaml;
use serde_json::Value as Json;

const CASES: &str = include_str!("../../tests-data/functions.yaml");
const ANSWERS: &str = include_str!("../../tests-data/functions.go.json");

/// Functions that query the cluster or the pack, or end the render, which Go's templates do not have; the tests of `render` cover them.
const OWN_FUNCTIONS: [&str; 13] = [
    "crdEnum",
    "crdHasEnum",
    "crdHasField",
    "foreignKubeletConfig",
    "getConfigMapData",
    "lookup",
    "notApplicable",
    "objectExists",
    "poolRuns",
    "prometheusRuleHasRecordingRule",
    "readAsset",
    "storageProfileRWXClass",
    "storageProfileRWXClasses",
];

/// The output of a case, or `None` for an error.
type Outcome = Option<String>;

fn ours(template: &str, data: &Json) -> (Outcome, String) {
    let parsed = match Parsed::read(template) {
        Ok(parsed) => parsed,
        Err(mistakes) => return (None, format!("{mistakes:?}")),
    };
    let (facts, files) = (Facts::default(), Files::default());
    let (yaml, gzipped) = (LastYaml::default(), Gzipped::default());
    let context = RenderContext {
        facts: &facts,
        files: &files,
        reads: None,
        yaml: &yaml,
        gzipped: &gzipped,
        budget: RenderBudget::default(),
    };
    match run(&parsed, &Value::from_json(data), &context) {
        Ok(text) => (Some(text), String::new()),
        Err(stop) => (None, format!("{stop:?}")),
    }
}

fn cases() -> serde_json::Map<String, Json> {
    match yaml::read::documents(CASES).unwrap().remove(0) {
        Json::Object(cases) => cases,
        other => panic!("expected a map of cases, got {}", yaml::read::kind_of(&other)),
    }
}

#[test]
fn every_function_prints_what_go_prints() {
    let answers: Vec<Json> = serde_json::from_str(ANSWERS).unwrap();
    let mut answers = answers.iter();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (function, list) in &cases() {
        for case in list.as_array().unwrap() {
            let template = case.as_str().or_else(|| case["template"].as_str()).unwrap();
            let answer = answers.next().expect("more cases than answers: run tools/oracle");
            assert_eq!(answer["template"], template, "the answers are stale: run tools/oracle");
            let go = answer.get("output").map(|output| output.as_str().unwrap().to_owned());
            let expected = match case.get("ours") {
                None => go.clone(),
                Some(Json::String(text)) => Some(text.clone()),
                Some(_) => None,
            };
            if case.get("ours").is_some() {
                assert!(case["why"].is_string(), "{function}: {template} differs without saying why");
                assert_ne!(expected, go, "{function}: {template} does not differ from Go any more");
            }
            let (outcome, why) = ours(template, case.get("data").unwrap_or(&Json::Null));
            if outcome != expected {
                wrong.push(format!("{function}: {template}\n  Go: {expected:?}\nours: {outcome:?} {why}\n"));
            }
            count += 1;
        }
    }
    assert!(answers.next().is_none(), "more answers than cases: run tools/oracle");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_function_has_three_cases() {
    let cases = cases();
    for function in functions::ALL.iter().filter(|function| !OWN_FUNCTIONS.contains(&function.name)) {
        let count = cases.get(function.name).and_then(Json::as_array).map_or(0, Vec::len);
        assert!(count >= 3, "{} has {count} cases", function.name);
    }
    for name in cases.keys().filter(|name| !name.starts_with('(')) {
        assert!(functions::find(name).is_some(), "there is no function {name}");
    }
}

//! Tests of what a profile wants, with a pack of two assets.

use super::{ProfileWants, WantedResult, missing, wanted};
use crate::cluster::facts::Facts;
use crate::cluster::need::Need;
use crate::cluster::query::{Answer, Query};
use crate::pack::catalog::Catalog;
use crate::pack::test_pack::{files, loaded};
use change::{Impact, Key, Kind};
use serde_json::{Value, json};

const METADATA: &str = "assets:
- {name: config, path: active/config.yaml.tpl, install: opt-in, gate_crd: things.example.io, conditions: [{type: annotation, key: platform.kubevirt.io/enable-config, value: \"true\"}]}
profile_assets:
- {name: args, path: active/args.yaml.tpl, impact: low, reports: true}
";
const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: config
  namespace: space
  labels: {platform.kubevirt.io/managed-by: x}
  annotations: {platform.kubevirt.io/a: x, other: z}
data:
  annotations: {{ .HCO.GetAnnotations | toRawJson | quote }}
";
const ARGS: &str = "apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: args}
spec: {kernelArguments: [{{ dig \"platform.kubevirt.io/argument\" \"none\" .HCO.GetAnnotations }}]}
";
const PROFILE: &str = "name: p
category: c
description: d
impact_summary: i
advertised: true
options:
  key: k
  properties:
    enabled: {type: boolean, description: d, default: true}
    size: {type: integer, description: d}
    deep: {type: object, description: d, properties: {list: {type: array}, enabled: {type: boolean, default: true}}}
items:
- {name: config, description: Configures., asset: config}
- {name: args, description: Sets arguments., asset: args, when: deep.enabled, formerly: old}
settings:
- {key: platform.kubevirt.io/enable-config, option: enabled}
- {key: platform.kubevirt.io/argument, option: size}
- {key: platform.kubevirt.io/list, option: deep.list, unless: enabled}
inputs:
- {name: limit, paths: [spec.new.limit, spec.old], unless: size}
";

fn pack() -> Catalog {
    loaded(files(&[
        ("active/metadata.yaml", METADATA),
        ("active/config.yaml.tpl", CONFIG),
        ("active/args.yaml.tpl", ARGS),
        ("active/notes.md", "platform.kubevirt.io/list"),
        ("profiles/p.yaml", PROFILE),
    ]))
}

fn old() -> Query {
    let kind = Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
    Query::of(&Key { kind, namespace: String::new(), name: "old".into() })
}

/// A cluster without an object of the predecessor.
fn facts() -> Facts {
    let annotations = json!({"platform.kubevirt.io/argument": "user", "theirs": "kept"});
    let mut facts =
        Facts { hco: json!({"metadata": {"annotations": annotations}, "spec": {"old": 3}}), ..Facts::default() };
    facts.answers.insert(old(), Answer::Absent);
    facts
}

fn with(options: &Value, facts: &Facts) -> ProfileWants {
    let catalog = pack();
    wanted(&catalog, &catalog.profiles[0], options.as_object(), facts)
}

/// The object of the item with this place.
fn object(wants: &ProfileWants, place: usize) -> &Value {
    match &wants.items[place].result {
        WantedResult::Object { key, object } => {
            assert_eq!(object["metadata"]["name"], key.name);
            object
        }
        other => panic!("{other:?}"),
    }
}

fn off(result: &WantedResult) -> Option<&str> {
    match result {
        WantedResult::Off { key } => key.as_ref().map(|key| key.name.as_str()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn templates_see_the_options_and_no_annotation_of_the_autopilot() {
    let wants = with(&json!({}), &facts());
    let config = object(&wants, 0);
    let seen: Value = serde_json::from_str(config["data"]["annotations"].as_str().unwrap()).unwrap();
    assert_eq!(seen, json!({"platform.kubevirt.io/enable-config": "true", "theirs": "kept"}));
    let metadata = json!({"name": "config", "namespace": "space", "annotations": {"other": "z"}});
    assert_eq!(config["metadata"], metadata, "nothing of the autopilot");
    assert_eq!(object(&wants, 1)["spec"]["kernelArguments"], json!(["none"]));
    let options = json!({"size": 7, "enabled": false, "deep": {"list": ["a"]}});
    assert_eq!(object(&with(&options, &facts()), 1)["spec"]["kernelArguments"], json!([7]));
}

#[test]
fn an_item_says_whether_the_operator_of_its_object_reports() {
    let wants = with(&json!({}), &facts());
    assert_eq!(wants.items.iter().map(|item| item.reports).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_setting_is_left_out_if_its_option_says_so() {
    let catalog = pack();
    let seen = |options: &Value| {
        let facts = super::overlaid(&catalog.profiles[0], options.as_object(), &facts());
        facts.hco["metadata"]["annotations"]["platform.kubevirt.io/list"].clone()
    };
    assert_eq!(seen(&json!({"enabled": false, "deep": {"list": ["a"]}})), "[\"a\"]");
    assert_eq!(seen(&json!({"enabled": true, "deep": {"list": ["a"]}})), Value::Null);
}

#[test]
fn a_cluster_without_a_hyperconverged_has_the_options_too() {
    for hco in [Value::Null, json!({}), json!({"metadata": {"annotations": null}})] {
        let wants = with(&json!({}), &Facts { hco, ..facts() });
        assert_eq!(object(&wants, 0)["metadata"]["name"], "config");
    }
}

#[test]
fn what_options_switch_off_has_a_key_and_no_object() {
    let wants = with(&json!({"enabled": false, "deep": {"enabled": false}}), &facts());
    assert_eq!(off(&wants.items[0].result), Some("config"), "its condition is an option");
    assert_eq!(off(&wants.items[1].result), Some("args"));
    assert_eq!(wants.items[1].impact, Impact::High, "removing it restarts nodes");
    let mut unserved = facts();
    unserved.absent.insert(Need::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig")));
    assert_eq!(off(&with(&json!({"deep": {"enabled": false}}), &unserved).items[1].result), None);
}

#[test]
fn what_options_switch_off_is_not_forgotten_while_its_name_cannot_be_found_out() {
    let named = ARGS.replace("name: args", r#"name: {{ getConfigMapData "n" "names" "args" }}"#);
    let catalog = loaded(files(&[
        ("active/metadata.yaml", METADATA),
        ("active/config.yaml.tpl", CONFIG),
        ("active/args.yaml.tpl", &named),
        ("active/notes.md", "platform.kubevirt.io/list"),
        ("profiles/p.yaml", PROFILE),
    ]));
    let options = json!({"deep": {"enabled": false}});
    let found =
        |facts: &Facts| wanted(&catalog, &catalog.profiles[0], options.as_object(), facts).items.swap_remove(1).result;
    let mut facts = facts();
    let WantedResult::Needs(queries) = found(&facts) else { panic!("{:?}", found(&facts)) };
    facts.answers.insert(queries[0].clone(), Answer::Unknown);
    assert_eq!(found(&facts), WantedResult::Held(queries[0].clone()));
    facts.answers.insert(queries[0].clone(), Answer::Found(json!({"data": {"args": "args"}})));
    assert_eq!(off(&found(&facts)), Some("args"));
}

#[test]
fn the_object_of_the_predecessor_is_taken_over_and_goes_where_ours_exists_too() {
    let mut facts = facts();
    facts.answers.insert(old(), Answer::Found(json!({})));
    let Query::Object { api_version, kind, namespace, .. } = old() else { panic!() };
    let own = Query::Object { api_version, kind, namespace, name: "args".into() };
    assert_eq!(with(&json!({}), &facts).items[1].result, WantedResult::Needs(vec![own.clone()]));
    facts.answers.insert(own.clone(), Answer::Unknown);
    assert_eq!(with(&json!({}), &facts).items[1].result, WantedResult::Held(own.clone()));
    facts.answers.insert(own.clone(), Answer::Found(json!({})));
    let both = with(&json!({}), &facts);
    assert_eq!(object(&both, 1)["metadata"]["name"], "args");
    assert_eq!(both.items[1].former.as_ref().map(|former| former.name.as_str()), Some("old"));
    facts.answers.insert(own, Answer::Absent);
    let wants = with(&json!({}), &facts);
    assert_eq!((object(&wants, 1)["metadata"]["name"].as_str(), wants.items[1].impact), (Some("old"), Impact::High));
    assert_eq!(wants.items[1].former, None);
    assert_eq!(off(&with(&json!({"deep": {"enabled": false}}), &facts).items[1].result), Some("old"));
    facts.answers.insert(old(), Answer::Unknown);
    assert_eq!(with(&json!({}), &facts).items[1].result, WantedResult::Held(old()));
    facts.answers.clear();
    assert_eq!(with(&json!({}), &facts).items[1].result, WantedResult::Needs(vec![old()]));
}

#[test]
fn an_input_is_the_first_that_exists_unless_an_option_replaces_it() {
    let value = |options: &Value, facts: &Facts| {
        let inputs = with(options, facts).inputs;
        inputs.first().map(|input| format!("{}={}", input.name, input.value))
    };
    let mut facts = facts();
    assert_eq!(value(&json!({}), &facts).as_deref(), Some("limit=3"));
    facts.hco["spec"]["new"] = json!({"limit": 4});
    assert_eq!(value(&json!({}), &facts).as_deref(), Some("limit=4"));
    assert_eq!(value(&json!({"size": 1}), &facts), None);
    facts.hco = Value::Null;
    assert_eq!(value(&json!({}), &facts).as_deref(), Some("limit=not set"));
}

#[test]
fn what_is_missing_is_named_for_items_that_are_on() {
    let catalog = pack();
    let profile = &catalog.profiles[0];
    let mut facts = facts();
    let map = Need::of(&Kind::new("v1", "ConfigMap"));
    let thing = Need::Crd { name: "things.example.io".into() };
    let config = Need::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig"));
    facts.absent.extend([map.clone(), thing.clone(), config.clone()]);
    let wants = with(&json!({}), &facts);
    let results: Vec<&WantedResult> = wants.items.iter().map(|item| &item.result).collect();
    assert_eq!(results, [&WantedResult::Missing(map.clone()), &WantedResult::Missing(config.clone())]);
    assert_eq!(missing(&catalog, profile, None, &facts), [map.clone(), thing.clone(), config]);
    let options = json!({"deep": {"enabled": false}});
    assert_eq!(missing(&catalog, profile, options.as_object(), &facts), [map, thing]);
    facts.absent.clear();
    assert_eq!(missing(&catalog, profile, None, &facts), []);
}

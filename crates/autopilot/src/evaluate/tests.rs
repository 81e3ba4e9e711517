//! Which objects are wanted.

use super::{AssetResult, Before, Outcome, evaluate};
use crate::testing::pack::{ALWAYS, Pack};
use catalog::{Answer, Facts, Need};
use change::Kind;
use serde_json::{Value, json};

fn outcome(keys: &str, template: &str, facts: &Facts) -> Outcome {
    let catalog = Pack::default().asset("a", keys, template).catalog();
    evaluate(&catalog, facts, false, Before::default()).outcomes.remove(0)
}

fn hco(annotations: &Value) -> Facts {
    Facts { hco: json!({"metadata": {"name": "h", "namespace": "n", "annotations": annotations}}), ..Facts::default() }
}

/// An object whose kind is known only from the render.
fn object_of(kind: &str) -> String {
    format!("apiVersion: v1\nkind: {{{{ {kind:?} }}}}\nmetadata: {{name: x}}\n")
}

#[test]
fn a_kind_that_only_the_render_shows_is_judged_like_any_other() {
    let node = outcome(ALWAYS, &object_of("Node"), &hco(&json!({}))).result;
    assert!(matches!(&node, AssetResult::Error(why) if why == "objects of kind Node cannot be managed"), "{node:?}");
    let mut facts = hco(&json!({}));
    facts.absent.insert(Need::of(&Kind::new("v1", "Widget")));
    let widget = outcome(ALWAYS, &object_of("Widget"), &facts).result;
    assert!(matches!(widget, AssetResult::Missing { .. }), "{widget:?}");
}

#[test]
fn after_new_answers_only_assets_that_make_queries_are_rendered() {
    let asking = "apiVersion: v1\nkind: Asking\nmetadata: {name: {{ getConfigMapData \"n\" \"m\" \"k\" }}}\n";
    let pack = Pack::default().asset("asks", ALWAYS, asking).asset("knows", ALWAYS, &object_of("Widget"));
    let (catalog, mut facts) = (pack.catalog(), hco(&json!({})));
    let mut outcomes = evaluate(&catalog, &facts, false, Before::default()).outcomes;
    let AssetResult::Needs(queries) = outcomes[0].result.clone() else { panic!("{outcomes:?}") };
    let answer = Answer::Found(json!({"data": {"k": "answered"}}));
    facts.answers.extend(queries.into_iter().map(|query| (query, answer.clone())));
    // It would be another if it were rendered.
    outcomes[1].component = "kept".into();
    let outcomes = evaluate(&catalog, &facts, false, Before { rules: None, outcomes }).outcomes;
    let name = |outcome: &Outcome| outcome.key.as_ref().map(|key| key.name.clone()).unwrap_or_default();
    assert_eq!((name(&outcomes[0]).as_str(), outcomes[1].component.as_str()), ("answered", "kept"));
    assert!(catalog.assets[0].queries && !catalog.assets[1].queries);
}

#[test]
fn an_object_that_the_user_excluded_is_filtered() {
    let facts = hco(&json!({"platform.kubevirt.io/disabled-resources": "Widget/x"}));
    let filtered = outcome(ALWAYS, &object_of("Widget"), &facts).result;
    assert!(matches!(filtered, AssetResult::Filtered(_)), "{filtered:?}");
    let included = outcome(ALWAYS, &object_of("Gadget"), &facts).result;
    assert!(matches!(included, AssetResult::Included(_)), "{included:?}");
}

#[test]
fn without_a_hyperconverged_no_name_is_made_of_it() {
    let keys = "install: opt-in, conditions: [{type: hardware-detection, detector: gpuPresent}]";
    let template = "apiVersion: v1\nkind: Widget\nmetadata: {name: '{{ .HCO.GetName }}-x'}\n";
    let name = |facts: &Facts| outcome(keys, template, facts).key.map(|key| key.name);
    assert_eq!((name(&hco(&json!({}))), name(&Facts::default())), (Some("h-x".into()), None));
}

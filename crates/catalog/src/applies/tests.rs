//! Tests of conditions.

use super::{Applicability, applies};
use crate::cluster::facts::Facts;
use crate::cluster::need::Need;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::{Asset, Install, Prune};
use crate::pack::condition::Condition;
use crate::pack::notes::Notes;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn asset(install: Install, conditions: Vec<Condition>) -> Asset {
    Asset {
        name: "a".into(),
        document: None,
        group: None,
        gate_crd: None,
        kind: None,
        path: "active/a.yaml".into(),
        phase: 1,
        install,
        component: "X".into(),
        reconcile_order: 1,
        conditions,
        template_params: BTreeMap::new(),
        impact: None,
        reads: None,
        prune: Prune::Default,
        notes: Notes::default(),
        source: String::new(),
        queries: false,
        reports: false,
    }
}

fn hco(value: Value) -> Facts {
    Facts { hco: value, ..Facts::default() }
}

fn kubevirt() -> Query {
    Query::List { api_version: "kubevirt.io/v1".into(), kind: "KubeVirt".into() }
}

fn summary(conditions: Vec<Condition>, facts: &Facts) -> String {
    match applies(&asset(Install::OptIn, conditions), facts) {
        Applicability::Applies => "applies".into(),
        Applicability::Not(unmet) => unmet.to_string(),
        Applicability::NotAskedFor(unmet) => format!("not asked for: {unmet}"),
        Applicability::Missing(need) => format!("missing {need}"),
        Applicability::Needs(queries) => format!("needs {}", queries.len()),
        Applicability::Held(query) => format!("held by {query}"),
        Applicability::Broken(reason) => format!("broken: {reason}"),
    }
}

fn check(condition: Condition, facts: &Facts, expected: &Expect) {
    expected.assert_eq(&summary(vec![condition], facts));
}

#[test]
fn without_conditions_the_install_mode_decides() {
    assert_eq!(applies(&asset(Install::Always, vec![]), &Facts::default()), Applicability::Applies);
    check_none(&expect!["it is opt-in and has no condition to opt in with"]);
    let unmet = Condition::Image { key: "i".into() };
    assert!(matches!(applies(&asset(Install::Always, vec![unmet]), &Facts::default()), Applicability::Not(_)));
}

fn check_none(expected: &Expect) {
    expected.assert_eq(&summary(vec![], &Facts::default()));
}

#[test]
fn an_annotation_condition_checks_the_value_or_the_presence() {
    let facts = hco(json!({"metadata": {"annotations": {"a": "true", "empty": ""}}}));
    let annotation =
        |key: &str, value: Option<&str>| Condition::Annotation { key: key.into(), value: value.map(str::to_owned) };
    check(annotation("a", Some("true")), &facts, &expect!["applies"]);
    check(annotation("empty", None), &facts, &expect!["applies"]);
    check(
        annotation("a", Some("yes")),
        &facts,
        &expect!["not asked for: annotation `a` of the HyperConverged object should be `yes` and is `true`"],
    );
    check(
        annotation("b", Some("true")),
        &facts,
        &expect!["not asked for: annotation `b` of the HyperConverged object should be `true` and is not set"],
    );
    for text in ["false", "FALSE", "", " "] {
        let facts = hco(json!({"metadata": {"annotations": {"a": text}}}));
        let expected =
            format!("not asked for: annotation `a` of the HyperConverged object should be `true` and is `{text}`");
        assert_eq!(summary(vec![annotation("a", Some("true"))], &facts), expected);
    }
    let facts = hco(json!({"metadata": {"annotations": {"a": "x".repeat(70)}}}));
    let expected = format!("broken: annotation `a` is `{}`; write true or false", "x".repeat(64));
    assert_eq!(summary(vec![annotation("a", Some("true"))], &facts), expected);
    check(
        annotation("b", None),
        &Facts::default(),
        &expect!["not asked for: annotation `b` of the HyperConverged object should be set and is not set"],
    );
}

#[test]
fn of_several_conditions_one_may_be_enough() {
    let annotation = |key: &str| Condition::Annotation { key: key.into(), value: Some("true".into()) };
    let gate = |name: &str| Condition::FeatureGate { value: name.into() };
    let any = |of: Vec<Condition>| Condition::Any { of };
    let facts = hco(json!({"metadata": {"annotations": {"a": "true", "typo": "treu"}}}));
    check(any(vec![gate("g"), annotation("a")]), &facts, &expect!["applies"]);
    check(any(vec![annotation("typo"), annotation("a")]), &facts, &expect!["applies"]);
    check(
        any(vec![annotation("b"), annotation("c")]),
        &facts,
        &expect![
            "not asked for: annotation `b` of the HyperConverged object should be `true` and is not set, or annotation `c` of the HyperConverged object should be `true` and is not set"
        ],
    );
    check(
        any(vec![annotation("b"), gate("g")]),
        &facts,
        &expect![
            "annotation `b` of the HyperConverged object should be `true` and is not set, or feature gate `g` of the HyperConverged object should be enabled and is not set"
        ],
    );
    check(
        any(vec![gate("g"), gate("h")]),
        &facts,
        &expect![
            "feature gate `g` of the HyperConverged object should be enabled and is not set, or feature gate `h` of the HyperConverged object should be enabled and is not set"
        ],
    );
    check(
        any(vec![annotation("b"), annotation("typo")]),
        &facts,
        &expect!["broken: annotation `typo` is `treu`; write true or false"],
    );
    check(any(vec![gate("g"), Condition::KubevirtFeatureGate { value: "k".into() }]), &facts, &expect!["needs 1"]);
}

#[test]
fn a_feature_gate_is_read_from_both_versions_of_hyperconverged() {
    let gate = |value: &str| Condition::FeatureGate { value: value.into() };
    let list = hco(json!({"spec": {"featureGates": [
        {"name": "on", "state": "Enabled"}, {"name": "bare"}, {"name": "off", "state": "Disabled"}
    ]}}));
    let map = hco(json!({"spec": {"featureGates": {"on": true, "off": false}}}));
    check(gate("on"), &list, &expect!["applies"]);
    check(gate("bare"), &list, &expect!["applies"]);
    check(gate("on"), &map, &expect!["applies"]);
    for facts in [&list, &map] {
        check(
            gate("off"),
            facts,
            &expect!["feature gate `off` of the HyperConverged object should be enabled and is disabled"],
        );
    }
    check(
        gate("other"),
        &list,
        &expect!["feature gate `other` of the HyperConverged object should be enabled and is not set"],
    );
}

#[test]
fn hardware_images_and_topology_are_checked() {
    let mut facts = Facts::default();
    facts.hardware.gpu_present = true;
    facts.topology.is_aws = true;
    facts.images.insert("exporter".into(), "quay.io/x".into());
    facts.images.insert("empty".into(), String::new());
    let detector = |detector: &str| Condition::HardwareDetection { detector: detector.into() };
    let image = |key: &str| Condition::Image { key: key.into() };
    let topology = |field: &str, value: bool| Condition::Topology { field: field.into(), value };
    check(detector("gpuPresent"), &facts, &expect!["applies"]);
    check(detector("vfioCapable"), &facts, &expect!["no node has an enabled IOMMU"]);
    check(detector("x"), &facts, &expect!["broken: there is no hardware detector `x`"]);
    check(image("exporter"), &facts, &expect!["applies"]);
    check(image("empty"), &facts, &expect!["image `empty` should be known to the operator and is not"]);
    check(topology("isAWS", true), &facts, &expect!["applies"]);
    check(topology("isHCP", false), &facts, &expect!["applies"]);
    check(topology("isAWS", false), &facts, &expect!["the cluster runs on AWS"]);
    check(topology("masterCount", true), &facts, &expect!["broken: the topology has no boolean `masterCount`"]);
}

#[test]
fn a_field_is_unconfigured_when_it_is_absent_null_or_an_empty_map() {
    let facts = hco(json!({"spec": {"a": null, "b": {}, "c": {"d": 0}, "e": []}}));
    let field = |path: &str| Condition::HcoFieldUnconfigured { path: path.into() };
    for path in ["spec.x", "spec.a", "spec.b", "spec.b.c", "spec.c.x", "status.y"] {
        check(field(path), &facts, &expect!["applies"]);
    }
    for path in ["spec.c", "spec.c.d", "spec.e"] {
        assert_eq!(
            summary(vec![field(path)], &facts),
            format!("field `{path}` of the HyperConverged object should be unset and is set")
        );
    }
}

#[test]
fn a_query_is_answered_absent_unknown_or_still_needed() {
    let gate = || Condition::KubevirtFeatureGate { value: "G".into() };
    let answered = |answer: Answer| {
        let mut facts = Facts::default();
        facts.answers.insert(kubevirt(), answer);
        facts
    };
    let gates =
        |gates: Value| json!([{"spec": {"configuration": {"developerConfiguration": {"featureGates": gates}}}}]);
    check(gate(), &Facts::default(), &expect!["needs 1"]);
    check(gate(), &answered(Answer::Unknown), &expect!["held by the list of kubevirt.io/v1 KubeVirt"]);
    check(
        gate(),
        &answered(Answer::Absent),
        &expect!["feature gate `G` of the KubeVirt object should be set and is not set: there is no such object"],
    );
    check(gate(), &answered(Answer::Found(gates(json!(["F", "G"])))), &expect!["applies"]);
    check(
        gate(),
        &answered(Answer::Found(gates(json!(["F"])))),
        &expect!["feature gate `G` of the KubeVirt object should be set and is not set"],
    );
    check(
        gate(),
        &answered(Answer::Found(json!([]))),
        &expect!["feature gate `G` of the KubeVirt object should be set and is not set"],
    );
}

#[test]
fn one_unmet_condition_decides() {
    let gate = || Condition::KubevirtFeatureGate { value: "G".into() };
    let image = || Condition::Image { key: "i".into() };
    let no_image = "image `i` should be known to the operator and is not";
    assert_eq!(summary(vec![gate(), image()], &Facts::default()), no_image);
    let mut unknown = Facts::default();
    unknown.answers.insert(kubevirt(), Answer::Unknown);
    assert_eq!(summary(vec![gate(), image()], &unknown), no_image);
    assert_eq!(summary(vec![gate(), gate()], &Facts::default()), "needs 1");
}

#[test]
fn an_unserved_kind_is_missing_only_for_assets_that_apply() {
    let kind = change::Kind::new("g.io/v1", "K");
    let gate = Need::Crd { name: "gates.g.io".into() };
    let needing = |install: Install, conditions: Vec<Condition>| Asset {
        kind: Some(kind.clone()),
        gate_crd: Some("gates.g.io".into()),
        ..asset(install, conditions)
    };
    let without =
        |needs: &[&Need]| Facts { absent: needs.iter().map(|need| (*need).clone()).collect(), ..Facts::default() };
    let always = needing(Install::Always, vec![]);
    assert_eq!(applies(&always, &Facts::default()), Applicability::Applies, "nothing is known to be absent");
    assert_eq!(applies(&always, &without(&[&gate])), Applicability::Missing(gate.clone()));
    let own = Need::of(&kind);
    assert_eq!(applies(&always, &without(&[&own, &gate])), Applicability::Missing(own.clone()), "its own kind first");
    let other = Need::of(&change::Kind::new("g.io/v2", "K"));
    assert_eq!(applies(&always, &without(&[&other])), Applicability::Applies);
    let image = || vec![Condition::Image { key: "i".into() }];
    let unasked = needing(Install::OptIn, image());
    assert!(matches!(applies(&unasked, &without(&[&own, &gate])), Applicability::Not(_)), "it does not apply");
}

#[test]
fn hosted_control_planes_are_told_what_to_do_instead_of_that_a_kind_is_missing() {
    let kind = change::Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
    let gate = Need::Crd { name: "gates.g.io".into() };
    let machine_config =
        Asset { kind: Some(kind.clone()), gate_crd: Some("gates.g.io".into()), ..asset(Install::Always, Vec::new()) };
    let own = Need::of(&kind);
    let mut facts = Facts { absent: [own.clone()].into(), ..Facts::default() };
    assert_eq!(applies(&machine_config, &facts), Applicability::Missing(own));
    facts.topology.is_hcp = true;
    assert_eq!(applies(&machine_config, &facts), Applicability::Applies, "its template says it");
    facts.absent.insert(gate.clone());
    assert_eq!(applies(&machine_config, &facts), Applicability::Missing(gate));
}

#[test]
fn an_annotation_or_a_feature_gate_is_a_user_condition() {
    let annotation = Condition::Annotation { key: "k".into(), value: None };
    assert!(asset(Install::OptIn, vec![Condition::Image { key: "i".into() }, annotation]).has_user_condition());
    assert!(asset(Install::Always, vec![Condition::FeatureGate { value: "g".into() }]).has_user_condition());
    assert!(!asset(Install::Always, vec![Condition::Image { key: "i".into() }]).has_user_condition());
}

//! What templates ask of the cluster.

use super::{HOUR, SECOND, config_map};
use crate::testing::bed::TestBed;
use crate::testing::pack::{self, ALWAYS, Pack};
use expect_test::expect;
use protocol::Command;
use serde_json::json;
fn source(color: &str) -> serde_json::Value {
    config_map("source", &json!({"color": color}))
}

/// Two assets that ask the same.
fn asking() -> TestBed {
    let data = "data: {color: '{{ getConfigMapData \"virt\" \"source\" \"color\" }}'}";
    let both = Pack::default().asset("one", ALWAYS, &pack::config_map("one", data)).asset(
        "two",
        ALWAYS,
        &pack::config_map("two", data),
    );
    TestBed::of(both)
}

fn queries(lines: &str) -> usize {
    lines.lines().filter(|line| *line == "query v1 ConfigMap virt/source").count()
}

#[test]
fn a_query_is_asked_once_for_all_who_need_it() {
    let mut bed = asking();
    bed.create("person", &source("red"));
    assert_eq!(queries(&bed.settle_verbosely()), 1);
    assert_eq!(bed.value("ConfigMap virt/two", "/data/color"), "red");
    bed.expect_silence();
}

#[test]
fn a_query_is_repeated_when_its_object_changes_and_at_no_other_time() {
    let mut bed = asking();
    bed.settle();
    bed.create("person", &config_map("unrelated", &json!({})));
    expect![[r#""#]].assert_eq(&bed.settle_verbosely());
    bed.create("person", &source("red"));
    expect![[r#"
        query v1 ConfigMap virt/source
        apply ConfigMap virt/one
        apply ConfigMap virt/two
        notice Answered ConfigMap virt/one: false
        notice AssetApplied ConfigMap virt/one: applied
        notice Answered ConfigMap virt/two: false
        notice AssetApplied ConfigMap virt/two: applied
    "#]]
    .assert_eq(&bed.settle_verbosely());
    bed.delete("ConfigMap virt/source");
    expect![[r#"
        apply ConfigMap virt/one
        apply ConfigMap virt/two
        notice AssetApplied ConfigMap virt/one: applied
        notice AssetApplied ConfigMap virt/two: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_query_that_cannot_be_answered_keeps_its_last_answer_and_is_repeated_after_ten_seconds() {
    let mut bed = asking();
    bed.create("person", &source("red"));
    bed.settle();
    bed.edit("person", "ConfigMap virt/source", &json!({"data": {"color": "blue"}}));
    bed.fail_reads(1);
    expect![[r#""#]].assert_eq(&bed.advance(9 * SECOND));
    expect![[r#"
        apply ConfigMap virt/one
        apply ConfigMap virt/two
        notice AssetApplied ConfigMap virt/one: applied
        notice AssetApplied ConfigMap virt/two: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    assert_eq!(bed.value("ConfigMap virt/one", "/data/color"), "blue");
    bed.expect_silence();
}

#[test]
fn what_is_asked_and_not_answered_yet_is_not_absent() {
    let mut bed = asking();
    bed.create("person", &source("red"));
    let is_asked = |command: &Command<crate::Notice>| matches!(command, Command::Query { query, .. } if query.to_string().ends_with("source"));
    bed.run_until(is_asked);
    let (asked, others) = std::mem::take(&mut bed.requests).into_iter().partition(is_asked);
    bed.requests = others;
    // What is served is asked again meanwhile.
    bed.install_crd(&crate::testing::bed::DESCHEDULERS);
    expect![""].assert_eq(&bed.advance(SECOND));
    bed.requests = asked;
    expect![[r#"
        create ConfigMap virt/one
        create ConfigMap virt/two
        notice AssetApplied ConfigMap virt/one: applied
        notice AssetApplied ConfigMap virt/two: applied
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value("ConfigMap virt/one", "/data/color"), "red");
}

#[test]
fn an_asset_whose_first_query_cannot_be_answered_waits_and_says_so() {
    let mut bed = asking();
    bed.create("person", &source("red"));
    bed.run_until(|command| matches!(command, Command::Query { query, .. } if query.to_string().ends_with("source")));
    bed.fail_reads(1);
    expect![[r#"
        notice Invalid: asset one: v1 ConfigMap virt/source cannot be read now
        notice Invalid: asset two: v1 ConfigMap virt/source cannot be read now
    "#]]
    .assert_eq(&bed.settle());
    expect![[r#"
        create ConfigMap virt/one
        create ConfigMap virt/two
        notice AssetApplied ConfigMap virt/one: applied
        notice AssetApplied ConfigMap virt/two: applied
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn a_change_during_a_query_repeats_it() {
    let mut bed = asking();
    bed.settle();
    bed.create("person", &source("red"));
    bed.run_until(|command| matches!(command, Command::Query { .. }));
    bed.edit("person", "ConfigMap virt/source", &json!({"data": {"color": "blue"}}));
    assert_eq!(queries(&bed.settle_verbosely()), 1);
    assert_eq!(bed.value("ConfigMap virt/one", "/data/color"), "blue");
    bed.expect_silence();
}

#[test]
fn a_template_that_asks_too_much_is_stopped() {
    let asks: String =
        (0..501).map(|number| format!("{{{{ getConfigMapData \"virt\" \"c{number}\" \"x\" }}}}")).collect();
    let pack = Pack::default().asset("a", ALWAYS, &pack::config_map("a", "")).asset(
        "greedy",
        ALWAYS,
        &pack::config_map("greedy", &format!("data: {{x: '{asks}'}}")),
    );
    let mut bed = TestBed::of(pack);
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice Invalid: asset greedy: v1 ConfigMap virt/c99 cannot be read now
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_template_may_ask_for_our_own_records() {
    let data = "data: {color: '{{ getConfigMapData \"virt\" \"virt-platform-autopilot-state\" \"color\" }}'}";
    let mut bed = TestBed::of(Pack::default().asset("one", ALWAYS, &pack::config_map("one", data)));
    bed.create("person", &config_map("virt-platform-autopilot-state", &json!({"color": "red"})));
    bed.settle();
    assert_eq!(bed.value("ConfigMap virt/one", "/data/color"), "red");
    bed.edit("person", "ConfigMap virt/virt-platform-autopilot-state", &json!({"data": {"color": "blue"}}));
    bed.settle();
    assert_eq!(bed.value("ConfigMap virt/one", "/data/color"), "blue");
    bed.expect_silence();
}

#[test]
fn a_crd_is_asked_about_again_when_its_generation_changes() {
    let name = crate::testing::bed::MACHINE_CONFIGS.name();
    let data = format!("data: {{has: '{{{{ crdHasEnum {name:?} \"spec.mode\" \"auto\" }}}}'}}");
    let mut bed = TestBed::of(Pack::default().asset("one", ALWAYS, &pack::config_map("one", &data)));
    bed.advance(HOUR);
    let crd = format!("CustomResourceDefinition {name}");
    let mut asked = |change: &serde_json::Value| {
        bed.edit("person", &crd, change);
        bed.advance_verbosely(SECOND).matches("query").count()
    };
    assert_eq!(asked(&json!({"metadata": {"labels": {"a": "b"}}})), 0);
    assert_eq!(asked(&json!({"spec": {"preserveUnknownFields": false}})), 1);
}

//! An operator that has run for a while reports the same as a core that sees its cluster for the first time.

use super::{PLAIN, SECOND, settled, started};
use crate::core::Config;
use crate::evaluate::gates::GateKind;
use crate::report::Report;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{Pack, config_map};
use crate::testing::serving::Crd;

/// The report of a new core that writes nothing; it knows what the operator reports of its last rules.
fn evaluated(bed: &TestBed) -> Report {
    let last_rules = bed.core.report().in_force;
    let mut observer = bed.fork(Config { writes: false, last_rules, ..bed.config.clone() });
    observer.run();
    observer.core.report()
}

fn check(bed: &TestBed) {
    let (operator, evaluated) = (bed.core.report(), evaluated(bed));
    assert_eq!(operator.assets, evaluated.assets);
    assert_eq!(operator.warnings, evaluated.warnings);
}

#[test]
fn the_last_rules_hold_while_the_annotations_cannot_be_read() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "disabled-resources=ConfigMap/opted");
    bed.settle();
    assert_eq!(bed.core.report().in_force, None);
    for wrong in ["disabled-resources=- {kind: [", "autopilot=plian"] {
        bed.annotate(HCO, wrong);
        bed.settle();
        let last = bed.core.report().in_force.unwrap();
        assert_eq!(last.disabled_resources.as_deref(), Some("ConfigMap/opted"));
        check(&bed);
    }
    // After a restart nobody knows them.
    bed.restart();
    bed.settle();
    assert_eq!(bed.core.report().in_force, None);
    check(&bed);
}

#[test]
fn advice_about_an_object_ends_with_it() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.annotate("ConfigMap virt/opted", "mood=good");
    bed.annotate(PLAIN, "mood=good");
    bed.settle();
    assert_eq!(bed.core.report().warnings.len(), 2);
    bed.delete(PLAIN);
    bed.settle();
    assert_eq!(bed.core.report().warnings.len(), 1);
    check(&bed);
    // The switch cannot be read: the operator keeps the object, and nobody else knows of it.
    bed.annotate(HCO, "enable-opted=ture");
    bed.settle();
    check(&bed);
    bed.annotate(HCO, "enable-opted=false");
    bed.settle();
    assert_eq!(bed.core.report().warnings.len(), 0);
    check(&bed);
}

#[test]
fn what_was_to_be_removed_is_gone_with_its_kind() {
    let widgets = Crd { api_version: "example.com/v1", kind: "Widget", plural: "widgets", namespaced: true };
    let keys =
        "install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-widget, value: \"true\"}]";
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: virt}\nspec: {a: 1}\n";
    let pack = Pack::default().asset("plain", "install: always", &config_map("plain", "data: {level: \"1\"}"));
    let mut bed = settled(pack.asset("widget", keys, widget));
    bed.install_crd(&widgets);
    bed.annotate(HCO, "enable-widget=true");
    bed.advance(SECOND * 10);
    bed.restart_with(|config| config.prune = false);
    bed.annotate(HCO, "enable-widget-");
    bed.advance(SECOND * 10);
    check(&bed);
    bed.remove_crd(&widgets);
    bed.advance(SECOND * 10);
    check(&bed);
}

#[test]
fn one_gate_excludes_what_is_switched_off_too() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.annotate(HCO, "disabled-resources=ConfigMap/opted");
    bed.annotate(HCO, "enable-opted=false");
    bed.settle();
    let explained = bed.explain().into_iter().find(|explanation| explanation.line.asset == "opted").unwrap();
    let rows: Vec<_> = explained.gates.iter().filter(|row| row.gate == GateKind::Exclusion).collect();
    assert!(matches!(rows[..], [row] if row.decides && row.value == "rule ConfigMap/opted"), "{explained:#?}");
    check(&bed);
}

//! Kinds that the server does not serve, where only a query or a render shows that they are needed.

use super::SECOND;
use crate::state_word::StateWord;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{ALWAYS, Pack, config_map};
use crate::testing::serving::Crd;
use expect_test::expect;
use serde_json::json;

const PROMETHEUSES: Crd =
    Crd { api_version: "monitoring.coreos.com/v1", kind: "Prometheus", plural: "prometheuses", namespaced: true };
const WIDGETS: Crd = Crd { api_version: "example.com/v1", kind: "Widget", plural: "widgets", namespaced: true };

#[test]
fn what_is_looked_up_in_a_kind_that_is_not_served_does_not_exist_until_it_is() {
    let template = config_map("asking", "data: {x: '{{ objectExists \"Prometheus\" \"virt\" \"p\" }}'}");
    let mut bed = TestBed::of(Pack::default().asset("asking", ALWAYS, &template));
    expect![[r#"
        create ConfigMap virt/asking
        notice AssetApplied ConfigMap virt/asking: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    assert_eq!(bed.value("ConfigMap virt/asking", "/data/x"), "false");
    bed.expect_silence();
    bed.install_crd(&PROMETHEUSES);
    bed.create(
        "person",
        &json!({"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
        "metadata": {"name": "p", "namespace": "virt"}}),
    );
    expect![[r#"
        apply ConfigMap virt/asking
        notice AssetApplied ConfigMap virt/asking: applied
    "#]]
    .assert_eq(&bed.advance(SECOND * 10));
    assert_eq!(bed.value("ConfigMap virt/asking", "/data/x"), "true");
    bed.expect_silence();
}

#[test]
fn what_is_looked_up_while_the_server_lags_behind_a_new_crd_does_not_exist() {
    let data = "data: {x: '{{ with index .HCO.GetAnnotations \"platform.kubevirt.io/ask\" }}\
        {{ objectExists . \"virt\" \"p\" }}{{ end }}'}";
    let mut bed = super::settled(Pack::default().asset("asking", ALWAYS, &config_map("asking", data)));
    let (kind, metadata) = ("CustomResourceDefinition", json!({"name": PROMETHEUSES.name()}));
    bed.create(
        "installer",
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": {}}),
    );
    bed.settle();
    bed.annotate(HCO, "ask=Prometheus");
    bed.advance(SECOND);
    assert_eq!(bed.value("ConfigMap virt/asking", "/data/x"), "false");
}

#[test]
fn a_kind_that_must_be_known_first_and_is_removed_before_it_is_listed_keeps_nothing_waiting() {
    let infrastructures = Crd {
        api_version: "config.openshift.io/v1",
        kind: "Infrastructure",
        plural: "infrastructures",
        namespaced: false,
    };
    let mut bed = super::unstarted(&["plain"]);
    bed.install_crd(&infrastructures);
    bed.silent.insert(infrastructures.kind.into());
    expect![""].assert_eq(&bed.advance(SECOND));
    bed.remove_crd(&infrastructures);
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(SECOND * 10));
}

#[test]
fn an_object_whose_kind_only_the_render_shows_waits_until_it_is_served() {
    let template =
        "apiVersion: example.com/v1\nkind: {{ \"Widget\" }}\nmetadata: {name: w, namespace: virt}\nspec: {a: 1}\n";
    let mut bed = TestBed::of(Pack::default().asset("widget", ALWAYS, template));
    expect![[""]].assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
    let status =
        bed.observe().iter().map(|line| format!("{}: {}", StateWord::of(&line.state), line.state)).collect::<String>();
    expect!["NotApplicable: the cluster does not serve Widget of example.com/v1; install the operator that provides the API group example.com"].assert_eq(&status);
    bed.install_crd(&WIDGETS);
    expect![[r#"
        create Widget virt/w
        notice AssetApplied Widget virt/w: applied
    "#]]
    .assert_eq(&bed.advance(SECOND * 10));
    bed.expect_silence();
    bed.remove_crd(&WIDGETS);
    bed.advance(SECOND * 10);
    bed.install_crd(&WIDGETS);
    expect![[r#"
        create Widget virt/w
        notice AssetApplied Widget virt/w: applied
    "#]]
    .assert_eq(&bed.advance(SECOND * 10));
    bed.expect_silence();
}

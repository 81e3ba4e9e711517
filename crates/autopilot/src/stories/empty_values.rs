//! Empty maps and lists, and nulls, in what is wanted.

use super::{MINUTE, SERVICE, settled};
use crate::testing::bed::TestBed;
use crate::testing::pack::{ALWAYS, Pack};
use serde_json::json;

fn service(ports: &str) -> Pack {
    let template = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: service, namespace: virt}}\nspec: {{selector: {{app: virt}}, {ports}}}\n"
    );
    Pack::default().asset("service", ALWAYS, &template)
}

#[test]
fn a_list_that_another_manager_applies_is_theirs_also_if_we_want_it_empty() {
    let mut bed = settled(service("externalIPs: []"));
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service", "namespace": "virt"}, "spec": {"externalIPs": ["1.2.3.4"]}});
    bed.apply_by_force("gitops", &theirs);
    let lines = bed.advance(MINUTE);
    assert_eq!(bed.value(SERVICE, "/spec/externalIPs"), json!(["1.2.3.4"]), "{lines}");
}

#[test]
fn a_list_that_another_manager_applied_before_is_not_emptied_by_an_adoption() {
    let mut bed = TestBed::of(service("externalIPs: []"));
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service", "namespace": "virt"}, "spec": {"externalIPs": ["1.2.3.4"]}});
    bed.apply_by_force("gitops", &theirs);
    let lines = bed.advance(MINUTE);
    assert_eq!(bed.value(SERVICE, "/spec/externalIPs"), json!(["1.2.3.4"]), "{lines}");
}

#[test]
fn a_null_in_a_template_is_no_drift_after_a_restart() {
    let mut bed = settled(service("clusterIP: null"));
    bed.expect_silence();
    for _ in 0..3 {
        bed.restart();
        let lines = bed.advance(MINUTE);
        assert!(!lines.contains("notice"), "{lines}");
    }
}

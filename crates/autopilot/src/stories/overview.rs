//! What the core says of itself, for probes, metrics and commands.

use super::{MINUTE, PLAIN, SECOND, on_request, settled, started, unstarted};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{ALWAYS, Pack, config_map};
use expect_test::expect;
use protocol::{Core as _, WatchTarget};

#[test]
fn a_core_says_what_it_knows() {
    let mut bed = unstarted(&["plain"]);
    let core = &bed.core;
    assert!(!core.has_evaluated() && !core.serves_hyperconverged() && !core.has_read_records());
    bed.settle();
    let core = &bed.core;
    assert!(core.has_evaluated() && core.serves_hyperconverged() && core.has_read_records());
    assert_eq!(core.facts().hco["metadata"]["name"], "kubevirt-hyperconverged");
}

#[test]
fn the_backlog_counts_writes_without_an_answer() {
    let mut bed = started(&["plain", "service"]);
    assert_eq!(bed.core.backlog(), 0);
    bed.hold_answers(PLAIN);
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "5"}]"#);
    bed.settle();
    assert_eq!(bed.core.backlog(), 1);
    bed.release(PLAIN);
    bed.settle();
    assert_eq!(bed.core.backlog(), 0);
}

#[test]
fn an_asset_that_is_not_wanted_is_not_in_sync_because_of_another_one() {
    let template = config_map("shared", "data: {x: '1'}");
    let pack = Pack::default().asset("one", ALWAYS, &template).asset("two", &on_request("two"), &template);
    let mut bed = TestBed::of(pack);
    bed.advance(SECOND);
    expect![[r#"
        one (ConfigMap virt/shared) InSync
        two (ConfigMap virt/shared) Disabled: annotation `platform.kubevirt.io/enable-two` of the HyperConverged object should be `true` and is not set
    "#]].assert_eq(&bed.status());
}

#[test]
fn a_large_object_that_a_new_render_decides_about_is_heavy() {
    for (size, is_heavy) in [(900_000, true), (10, false)] {
        let color = "{{ index .HCO.GetAnnotations \"platform.kubevirt.io/color\" | default \"none\" }}";
        let data = format!("data: {{color: '{color}', text: {}}}", "x".repeat(size));
        let mut bed = settled(Pack::default().asset("large", ALWAYS, &config_map("large", &data)));
        bed.advance(MINUTE);
        bed.annotate(HCO, "color=red");
        let event = bed.next_event(&WatchTarget::of(&bed.key(HCO))).unwrap();
        // This event renders, and the object is decided about before the core returns.
        assert_eq!(bed.core.is_heavy(std::slice::from_ref(&event)), is_heavy);
    }
}

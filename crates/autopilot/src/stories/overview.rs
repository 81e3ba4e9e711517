//! What the core says of itself, for probes, metrics and commands.

use super::{PLAIN, started, unstarted};
use protocol::Core as _;

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

//! The summary of a plan, and which of its items are going to happen.

use super::{Item, ItemState, Operation, Plan, moved, offline, state_of};
use crate::testing::pack::{ALWAYS, Pack, config_map};
use catalog::{Facts, Pool};
use change::{Difference, Digest, Edit, Reason, Shown};
use serde_json::{Value, json};

fn item(state: ItemState, operation: Operation) -> Item {
    Item { operation: Some(operation), ..Item::bare("a", None, state, String::new()) }
}

fn waiting(number: u64) -> Item {
    let approval = Some(Digest::of(&json!(number)));
    Item { needs_approval: true, approval, ..item(ItemState::Waiting, Operation::Change) }
}

fn summary(items: Vec<Item>) -> String {
    Plan { items, in_sync: 0 }.to_string()
}

#[test]
fn the_summary_counts_what_happens_what_waits_and_what_does_not() {
    assert_eq!(summary(Vec::new()), "Plan: nothing to do.");
    let all = vec![
        item(ItemState::Ready, Operation::Create),
        item(ItemState::Ready, Operation::Create),
        item(ItemState::Ready, Operation::Delete),
        item(ItemState::Ready, Operation::Record),
        item(ItemState::Waiting, Operation::Adopt),
        item(ItemState::Held, Operation::Change),
        item(ItemState::Failed, Operation::Create),
        waiting(1),
    ];
    let short = Digest::of(&json!(1)).short();
    let expected = format!(
        "Plan: 2 to create, 1 to change, 1 to adopt, 1 to delete; 1 needs approval ({short}); 1 waiting; 1 held; 1 failed."
    );
    assert_eq!(summary(all), expected);
    let unknown = Item { approval: None, ..waiting(1) };
    assert_eq!(summary(vec![unknown]), "Plan: 1 to change; 1 needs approval.");
    let many = summary((1..=5).map(waiting).collect());
    assert!(many.starts_with("Plan: 5 to change; 5 need approval (") && many.ends_with(", ...)."), "{many}");
    let same = summary(vec![waiting(1), waiting(1)]);
    assert_eq!(same, format!("Plan: 2 to change; 2 need approval ({short})."), "one digest covers both");
}

#[test]
fn what_is_going_to_happen_is_pending() {
    for (state, operation, expected) in [
        (ItemState::Ready, Operation::Change, true),
        (ItemState::Waiting, Operation::Delete, true),
        (ItemState::Ready, Operation::Record, false),
        (ItemState::Held, Operation::Change, false),
        (ItemState::Failed, Operation::Create, false),
    ] {
        assert_eq!(item(state, operation).is_pending(), expected, "{state:?} {operation}");
    }
}

#[test]
fn a_reason_waits_is_held_or_has_failed() {
    let message = || "why".to_owned();
    for (reason, expected) in [
        (Reason::WindowClosed { opens: None, restarts: Box::default() }, ItemState::Waiting),
        (Reason::DeletionsUnknown { kinds: Vec::new() }, ItemState::Waiting),
        (Reason::Unmanaged, ItemState::Held),
        (Reason::Excluded, ItemState::Held),
        (Reason::Suspended { why: String::new() }, ItemState::Held),
        (Reason::RefusedByServer { message: message() }, ItemState::Failed),
        (Reason::ReadFailed { message: message() }, ItemState::Failed),
    ] {
        assert_eq!(state_of(&reason), expected, "{reason:?}");
    }
}

/// A ConfigMap and a MachineConfig of the pool worker.
fn restarting() -> Pack {
    let kernel = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "kernel", "labels": {catalog::ROLE: "worker"}}, "spec": {"kernelArguments": ["quiet"]}});
    let plain = config_map("plain", "data: {level: \"1\"}");
    Pack::default().asset("plain", "install: always, reconcile_order: 9", &plain).asset(
        "kernel",
        ALWAYS,
        &kernel.to_string(),
    )
}

fn facts(annotations: &Value, pools: &[(&str, i64)]) -> Facts {
    let hco = json!({"metadata": {"name": "kubevirt-hyperconverged", "namespace": "virt", "annotations": annotations}});
    let pool = |(name, machine_count): &(&str, i64)| Pool {
        name: (*name).to_owned(),
        machine_count: *machine_count,
        ..Pool::default()
    };
    Facts { hco, pools: pools.iter().map(pool).collect(), ..Facts::default() }
}

#[test]
fn an_installation_is_planned_from_facts_in_the_order_of_writes() {
    let shown = |annotations: &Value| {
        let items = offline(&restarting().catalog(), &facts(annotations, &[("worker", 3)]), false);
        let line = |item: &Item| {
            let approval = if item.needs_approval { " needs approval" } else { "" };
            let diff = item.diff.len();
            format!(
                "{:?} {}: {diff} fields, {}{approval}",
                item.state,
                item.name(),
                item.disruption_with_cost().unwrap_or_default()
            )
        };
        items.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&json!({})),
        [
            "Waiting MachineConfig kernel: 2 fields, restarts 3 nodes of pool worker, 1 at a time needs approval",
            "Ready ConfigMap virt/plain: 1 fields, ",
        ]
    );
    assert_eq!(
        shown(&json!({api::annotation::APPROVAL: "none"})),
        [
            "Ready MachineConfig kernel: 2 fields, restarts 3 nodes of pool worker, 1 at a time",
            "Ready ConfigMap virt/plain: 1 fields, ",
        ]
    );
}

#[test]
fn without_a_cluster_the_nodes_of_pools_are_counted_as_far_as_the_facts_tell() {
    let said = |pools: &[(&str, i64)]| {
        let items = offline(&restarting().catalog(), &facts(&json!({}), pools), false);
        items[0].disruption.clone()
    };
    assert_eq!(said(&[]), "restarts the nodes of its pool; the facts name no pools");
    assert_eq!(said(&[("master", 3)]), "restarts no node: no pool takes it");
    assert_eq!(said(&[("master", 3), ("worker", 0)]), "restarts no node of pool worker");
    assert_eq!(said(&[("worker", 1)]), "restarts one node of pool worker");
    assert_eq!(said(&[("worker", 2)]), "restarts 2 nodes of pool worker, 1 at a time");
}

#[test]
fn what_needed_no_approval_and_is_done_by_now_was_the_plan() {
    let plan = |items: Vec<Item>| Plan { items, in_sync: 0 };
    let said = |saved: Item, now: Vec<Item>| {
        let all = moved(&plan(vec![saved]), &plan(now));
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(said(item(ItemState::Ready, Operation::Change), Vec::new()), "");
    assert_eq!(said(waiting(1), Vec::new()), "asset a: nothing waits for an approval any more (planned: change)");
    let edit = Edit::Removed { before: Shown::Redacted };
    let diff = vec![Difference { path: ".data".to_owned(), edit }];
    let hidden = |number: u64| Item { diff: diff.clone(), digest: waiting(number).approval, ..waiting(number) };
    assert_eq!(
        said(hidden(1), vec![hidden(2)]),
        "asset a: the same fields, but the object was replaced, a value that is not shown changed, or an approval of it was used"
    );
    let ready = |operation: Operation| item(ItemState::Ready, operation);
    assert_eq!(
        said(ready(Operation::Change), vec![ready(Operation::Delete)]),
        "asset a: planned: change, and now: delete"
    );
}

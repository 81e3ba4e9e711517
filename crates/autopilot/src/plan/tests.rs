//! The summary of a plan, and which of its items are going to happen.

use super::{Item, ItemState, Operation, Plan, state_of};
use change::{Digest, Reason, Restarts};
use serde_json::json;

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
        (Reason::WindowClosed { opens: None, restarts: Restarts::default() }, ItemState::Waiting),
        (Reason::DeletionsUnknown { kinds: Vec::new() }, ItemState::Waiting),
        (Reason::Unmanaged, ItemState::Held),
        (Reason::Excluded, ItemState::Held),
        (Reason::Suspended, ItemState::Held),
        (Reason::RefusedByServer { message: message() }, ItemState::Failed),
        (Reason::ReadFailed { message: message() }, ItemState::Failed),
    ] {
        assert_eq!(state_of(&reason), expected, "{reason:?}");
    }
}

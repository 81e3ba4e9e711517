//! Which searches are made, when, and what they found.

use super::Orphans;
use crate::evaluate::DesiredObject;
use crate::removal::Cause;
use crate::unwanted::Unwanted;
use change::{Desired, Impact, Key, Kind, Moment};
use protocol::{Search, WatchTarget};
use serde_json::json;
use std::time::Duration;

fn key(kind: &str, name: &str) -> Key {
    Key { kind: Kind::new("v1", kind), namespace: "n".into(), name: name.into() }
}

fn target(kind: &str) -> WatchTarget {
    WatchTarget::of(&key(kind, ""))
}

fn label(kind: &str) -> Search {
    Search::Label(target(kind))
}

fn at(milliseconds: u64) -> Moment {
    Moment::since_start(Duration::from_millis(milliseconds))
}

fn unwanted(key: &Key, cause: Cause, impact: Impact) -> Unwanted {
    let object = DesiredObject {
        key: key.clone(),
        desired: Desired::of(&json!({})),
        impact,
        source: String::new(),
        never_pruned: false,
        documents: Vec::new(),
        read: None,
    };
    Unwanted { asset: "a".into(), order: 0, cause, object: object.into() }
}

#[test]
fn a_search_is_made_once_after_the_writes_or_after_a_second() {
    let mut orphans = Orphans::default();
    orphans.plan(label("A"), at(0));
    orphans.plan(label("B"), at(500));
    assert_eq!(orphans.deadline(), Some(at(1000)));
    assert_eq!(orphans.due(false, at(999)), []);
    assert_eq!(orphans.due(false, at(1000)), [label("A"), label("B")]);
    orphans.plan(label("A"), at(2000));
    assert_eq!((orphans.due(true, at(2000)), orphans.deadline()), (vec![], None), "it was made");
    orphans.forget(&label("A"));
    orphans.plan(label("A"), at(3000));
    assert_eq!(orphans.due(true, at(3000)), [label("A")], "nothing is being written");
}

#[test]
fn a_target_is_searched_once_its_search_is_answered() {
    let mut orphans = Orphans::default();
    assert!(!orphans.is_searched(&target("A")), "nobody has looked");
    orphans.plan(label("A"), at(0));
    assert!(!orphans.is_searched(&target("A")), "it waits");
    orphans.due(true, at(0)).iter().for_each(|search| orphans.search_sent(search));
    assert!(!orphans.is_searched(&target("A")), "it has no answer");
    orphans.search_answered(&label("A"));
    assert!(orphans.is_searched(&target("A")) && !orphans.has_failed(&target("A")));
    assert_eq!(orphans.search_failed(&label("A"), at(0)), at(1000));
    assert_eq!(orphans.search_failed(&label("A"), at(0)), at(2000));
    assert!(!orphans.is_searched(&target("A")) && orphans.has_failed(&target("A")));
    orphans.search_succeeded(&label("A"));
    assert!(orphans.is_searched(&target("A")) && !orphans.has_failed(&target("A")));
}

#[test]
fn what_a_watch_has_listed_need_not_be_searched() {
    let mut orphans = Orphans::default();
    orphans.watch_closed(&target("A"), true);
    orphans.watch_closed(&target("B"), false);
    assert!(orphans.is_searched(&target("A")) && !orphans.is_searched(&target("B")));
}

#[test]
fn one_object_is_looked_for_once() {
    let mut orphans = Orphans::default();
    assert!(orphans.is_unsearched(&key("A", "x")));
    orphans.plan(Search::Name(key("A", "x")), at(0));
    assert!(!orphans.is_unsearched(&key("A", "x")) && orphans.is_unsearched(&key("A", "y")));
}

#[test]
fn a_kind_that_is_gone_is_searched_again_when_it_is_served_again() {
    let mut orphans = Orphans::default();
    let keys = [key("A", "x"), key("B", "x")];
    orphans.expect(keys.iter().map(|key| (key.clone(), unwanted(key, Cause::OptedOut, Impact::Low))).collect());
    for (kind, key) in ["A", "B"].into_iter().zip(&keys) {
        orphans.plan(label(kind), at(0));
        orphans.search_sent(&label(kind));
        orphans.observe(key);
    }
    orphans.due(true, at(0));
    orphans.kind_gone(&Kind::new("v1", "A"));
    for search in [label("A"), label("B")] {
        orphans.plan(search, at(0));
    }
    assert_eq!(orphans.due(true, at(0)), [label("A")]);
    assert!(orphans.is_searched(&target("A")), "the answer to the earlier search is not awaited");
    assert!(!orphans.is_searched(&target("B")));
    let found: Vec<Key> = orphans.to_remove(|_| false).into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, keys[1..]);
}

#[test]
fn only_what_exists_is_removed_and_what_is_managed_is_decided_about_already() {
    let mut orphans = Orphans::default();
    let (gone, found, managed) = (key("A", "gone"), key("A", "found"), key("A", "managed"));
    let all = [&gone, &found, &managed].map(|key| (key.clone(), unwanted(key, Cause::OptedOut, Impact::Low)));
    orphans.expect(all.into());
    [&gone, &found, &managed, &key("A", "wanted")].into_iter().for_each(|key| orphans.observe(key));
    orphans.observe_absent(&gone);
    let removed: Vec<Key> = orphans.to_remove(|key| *key == managed).into_iter().map(|(key, _)| key).collect();
    assert_eq!(removed, [found]);
}

#[test]
fn an_edit_asks_for_deletions_that_restart_no_node_and_are_of_this_release() {
    let mut orphans = Orphans::default();
    let keys = ["former", "high", "low"].map(|name| key("A", name));
    let causes = [(Cause::Tombstone, Impact::Low), (Cause::NotNamed, Impact::High), (Cause::NotNamed, Impact::Low)];
    let all = keys.iter().zip(causes);
    orphans.expect(all.map(|(key, (cause, impact))| (key.clone(), unwanted(key, cause, impact))).collect());
    assert_eq!(orphans.candidates().collect::<Vec<_>>(), [&keys[2]]);
}

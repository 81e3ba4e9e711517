//! When the server is asked what it serves, and what is known without asking.

use super::{CrdChange, Discovery};
use catalog::{Catalog, Files};
use change::{Kind, Moment};
use protocol::{Discovered, Groups, Kinds};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The only CRD that something needs.
const GATE: &str = "gates.needed.io";

fn discovery() -> Discovery {
    let assets = "assets: [{name: a, path: active/a.yaml, install: always, gate_crd: gates.needed.io}]";
    let files = BTreeMap::from([
        ("active/metadata.yaml".to_owned(), format!("{assets}\nexcluded_assets: [a]\n").into_bytes()),
        ("active/a.yaml".to_owned(), b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_vec()),
    ]);
    Discovery::new(&Catalog::load(Files::new(files)).unwrap())
}

/// One that has an answer, in which the gate is served or not.
fn answered(is_served: bool) -> Discovery {
    let resource =
        json!({"resource": "gates", "responseKind": {"kind": "Gate"}, "scope": "Cluster", "verbs": ["list"]});
    let resources: Vec<Value> = is_served.then_some(resource).into_iter().collect();
    let group = json!({"metadata": {"name": "needed.io"}, "versions": [{"version": "v1", "resources": resources}]});
    let groups = Groups::read(&json!({"items": [group]}).to_string(), "tag".into()).unwrap();
    let mut discovery = discovery();
    discovery.begin();
    let all = Discovered::All(Kinds::read("{}", groups).unwrap());
    assert_eq!(discovery.take(Ok(all), at(0)), (true, None));
    discovery
}

fn at(milliseconds: u64) -> Moment {
    Moment::since_start(Duration::from_millis(milliseconds))
}

fn kind(group: &str) -> Kind {
    Kind::new(&format!("{group}/v1"), "Kind")
}

/// How often the server is asked again if its answer never changes.
fn tries(discovery: &mut Discovery) -> usize {
    discovery.ask_soon(at(0));
    let again = || {
        discovery.begin();
        discovery.take(Ok(Discovered::Unchanged), at(0)).1
    };
    std::iter::repeat_with(again).take_while(Option::is_some).take(100).count()
}

#[test]
fn only_a_change_of_a_crd_that_matters_makes_us_ask() {
    let mut discovery = discovery();
    let mut observe = |name: &str, is_deleting: bool| discovery.observe(name, 1, is_deleting, true);
    assert_eq!(observe("others.other.io", false), CrdChange::None, "nothing needs its group");
    assert_eq!(observe("others.other.io", true), CrdChange::None);
    assert_eq!(observe(GATE, false), CrdChange::MayBeServed);
    assert_eq!(observe(GATE, false), CrdChange::MayBeServed, "it is not served yet");
    assert_eq!(observe(GATE, true), CrdChange::Deleted);
    assert!(discovery.unsure && discovery.present.is_empty(), "a CRD that nothing needs is not remembered");
}

#[test]
fn an_absent_kind_is_surely_not_served_unless_its_group_may_have_changed_or_the_server_is_asked() {
    let mut discovery = answered(false);
    discovery.observe("others.listed.io", 1, false, false);
    discovery.observe(GATE, 1, false, true);
    assert!(discovery.is_sure_of(&kind("listed.io")), "it was listed before the answer");
    discovery.observe("others.news.io", 1, false, true);
    assert!(!discovery.is_sure_of(&kind("news.io")), "it is newer than the answer");
    assert!(discovery.is_sure_of(&kind("needed.io")));
    discovery.ask_soon(at(0));
    assert!(!discovery.is_sure_of(&kind("needed.io")) && !discovery.is_in_flight(), "the server is asked soon");
    discovery.begin();
    assert!(!discovery.is_sure_of(&kind("needed.io")) && discovery.is_in_flight(), "the answer is on its way");
    discovery.take(Ok(Discovered::Unchanged), at(0));
    assert!(!discovery.is_in_flight());
}

#[test]
fn a_crd_is_known_in_the_generation_that_was_seen_last_until_it_is_gone() {
    let mut discovery = discovery();
    assert!(!discovery.knows(GATE, 1));
    discovery.observe(GATE, 1, false, true);
    assert!(discovery.knows(GATE, 1) && !discovery.knows(GATE, 2));
    let listed = |name: &str| BTreeSet::from([(String::new(), name.to_owned())]);
    assert_eq!(discovery.known_except(&listed(GATE)), [""; 0]);
    assert_eq!(discovery.known_except(&listed("others.needed.io")), [GATE]);
    discovery.observe_deleted(GATE);
    assert!(!discovery.knows(GATE, 1) && discovery.known_except(&listed("x")).is_empty());
}

#[test]
fn a_server_that_does_not_follow_a_change_is_asked_a_few_times() {
    let mut discovery = answered(true);
    assert_eq!(discovery.observe(GATE, 1, false, false), CrdChange::None, "it is served");
    assert_eq!(tries(&mut discovery), 0);
    assert_eq!(discovery.observe(GATE, 2, false, true), CrdChange::MayBeServed);
    assert_eq!(tries(&mut discovery), 6, "most changes do not affect what is served");
    let mut discovery = answered(false);
    discovery.observe(GATE, 1, false, false);
    assert_eq!(tries(&mut discovery), 16, "what is not served yet will be");
}

#[test]
fn the_server_is_asked_at_the_earliest_of_the_planned_times() {
    let mut discovery = discovery();
    discovery.begin();
    assert_eq!(discovery.take(Err("no route".into()), at(0)), (false, Some(at(100))));
    assert_eq!(discovery.ask_soon(at(0)), Some(at(25)), "earlier");
    assert_eq!(discovery.ask_soon(at(0)), None, "at the same time");
    assert_eq!(discovery.ask_soon(at(10)), None, "later");
    discovery.begin();
    assert_eq!(discovery.ask_soon(at(30)), None, "an answer is on its way");
}

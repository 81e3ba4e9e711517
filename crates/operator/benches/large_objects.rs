//! How long a decision about a large object takes: `make bench`.
#![expect(clippy::unwrap_used, reason = "it measures and prints")]

use autopilot::{Approvals, Observed, decide, inspect};
use change::gate::{Conditions, PoolState, Window};
use change::{Consent, Desired, Impact, Key, Live, ManagedFields, Moment, Now, PatchableKinds, Restarts};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The largest object that an override may make.
const BYTES: usize = 1024 * 1024;

fn main() {
    println!("{:<46} {:>9} {:>9} {:>9}", "one decision about an object of 1 MiB", "leaves", "decide", "inspect");
    for (name, spec, fields) in [one_text(), map(8), map(60), list_by_key(), list_of_one_owner()] {
        measure(name, &spec, &fields);
    }
}

/// One long text, as in a MachineConfig.
fn one_text() -> (&'static str, Value, Value) {
    ("one text", json!({"text": "x".repeat(BYTES)}), json!({"f:text": {}}))
}

/// A map of short values.
fn map(length: usize) -> (&'static str, Value, Value) {
    let count = BYTES / (length + 16);
    let keys = || (0..count).map(|number| format!("key-{number:06}"));
    let values: Map<String, Value> = keys().map(|key| (key, json!("x".repeat(length)))).collect();
    let fields: Map<String, Value> = keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    let name = if length < 10 { "a map of short texts" } else { "a map of texts" };
    (name, json!({"map": values}), json!({"f:map": fields}))
}

/// A list whose items are told apart by their names; one key is filled in by the server.
fn list_by_key() -> (&'static str, Value, Value) {
    let count = BYTES / 45;
    let items: Vec<Value> =
        (0..count).map(|number| json!({"name": format!("item-{number:06}"), "value": "x"})).collect();
    let key = |number: usize| format!(r#"k:{{"name":"item-{number:06}","protocol":"TCP"}}"#);
    let fields: Map<String, Value> =
        (0..count).map(|number| (key(number), json!({".": {}, "f:name": {}, "f:value": {}}))).collect();
    ("a list of items with keys", json!({"list": items}), json!({"f:list": fields}))
}

/// A list that has one owner.
fn list_of_one_owner() -> (&'static str, Value, Value) {
    ("a list of numbers", json!({"list": vec![1; BYTES / 2]}), json!({"f:list": {}}))
}

fn measure(name: &str, spec: &Value, fields: &Value) {
    let object =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", "namespace": "n"}, "spec": spec});
    let (key, desired, consent) = (Key::of(&object).unwrap(), Desired::of(&object), Consent::default());
    let entry = |manager: &str, operation: &str, time: &str| json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": {"f:spec": fields}});
    // Somebody else took everything, and the autopilot has just started: nothing is known, so all is compared.
    let entries = json!([entry(api::FIELD_MANAGER, "Apply", "1"), entry("kubectl", "Update", "2")]);
    let live = Live {
        uid: "u".into(),
        resource_version: "1".into(),
        managed_fields: ManagedFields::new(&entries.to_string()),
        annotations: BTreeMap::from([(api::annotation::ORIGIN.to_owned(), "created".to_owned())]),
        labelled: true,
        ..Live::default()
    };
    let observed = Observed {
        key: &key,
        desired: &desired,
        impact: Impact::Low,
        restarts: &Restarts::default(),
        source: "",
        live: Some(&live),
        remembered: None,
        inspected: None,
        is_verified: true,
        documents: &[],
        had_documents: false,
        budget: None,
        recreation: None,
        dropped: &[],
        refused: &[],
        unanswered: false,
        approvals: Approvals::default(),
        half_done: None,
        suspended: false,
        excluded: false,
        exclusions_unclear: false,
        patchable: &PatchableKinds::none(),
        conditions: Conditions { consent: &consent, pool: PoolState::Ready, window: Window::Open },
    };
    let now = Now { wall: "2027-01-15T08:00:00Z".parse().unwrap(), monotonic: Moment::default() };
    let mut content = object.clone();
    content["metadata"]["resourceVersion"] = json!("1");
    let decided = mean(|| drop(std::hint::black_box(decide(&observed, now))));
    let inspected = mean(|| drop(std::hint::black_box(inspect(&observed, &content))));
    println!("{name:<46} {:>9} {decided:>9.1?} {inspected:>9.1?}", leaves(&object));
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(leaves).sum(),
        Value::Array(items) => items.iter().map(leaves).sum(),
        _ => 1,
    }
}

/// The mean of several runs, in time on the processor: other work on the machine does not count.
fn mean(mut run: impl FnMut()) -> Duration {
    const RUNS: u32 = 20;
    let begun = processor_time();
    (0..RUNS).for_each(|_| run());
    (processor_time() - begun) / RUNS
}

/// How long this thread was running so far.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or_default())
}

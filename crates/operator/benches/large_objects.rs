//! How long a decision about a large object takes: `make bench`.
#![expect(clippy::unwrap_used, reason = "it measures and prints")]

use autopilot::{Approvals, Observed, decide, inspect};
use change::gate::{Conditions, PoolState};
use change::{Consent, Desired, Impact, Key, Live, ManagedFields, Moment, Now, PatchableKinds, Restarts};
use change::{Maintenance, Window};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How large an object is as the server stores it, with the fields of two managers.
const BYTES: usize = 1024 * 1024;
/// As many values as an override may insert.
const VALUES: usize = 2_500;

fn main() {
    println!("{:<46} {:>9} {:>9} {:>9} {:>9} {:>9}", "one decision", "bytes", "leaves", "decide", "inspect", "parse");
    println!("parse: what is wanted, what is there and its managedFields, only parsed into trees");
    println!("as large as an override may make it");
    for (name, spec, fields) in [one_text(), map(VALUES), list_by_key(VALUES / 14), list_of_one_owner(VALUES)] {
        measure(name, &spec, &fields);
    }
    println!("as only an asset can be");
    for (name, spec, fields) in [map(17_000), list_by_key(5_600), list_of_one_owner(BYTES / 2)] {
        measure(name, &spec, &fields);
    }
}

/// One long text, as in a MachineConfig.
fn one_text() -> (&'static str, Value, Value) {
    ("one text", json!({"text": "x".repeat(BYTES)}), json!({"f:text": {}}))
}

/// A map of texts.
fn map(count: usize) -> (&'static str, Value, Value) {
    let text = "x".repeat(BYTES / count - 16 - 2 * 18);
    let keys = || (0..count).map(|number| format!("key-{number:06}"));
    let values: Map<String, Value> = keys().map(|key| (key, json!(text))).collect();
    let fields: Map<String, Value> = keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    ("a map of texts", json!({"map": values}), json!({"f:map": fields}))
}

/// A list whose items are told apart by their names; one key is filled in by the server.
fn list_by_key(count: usize) -> (&'static str, Value, Value) {
    let text = "x".repeat((BYTES / count).saturating_sub(34 + 2 * 75));
    let items: Vec<Value> =
        (0..count).map(|number| json!({"name": format!("item-{number:06}"), "value": text})).collect();
    let key = |number: usize| format!(r#"k:{{"name":"item-{number:06}","protocol":"TCP"}}"#);
    let fields: Map<String, Value> =
        (0..count).map(|number| (key(number), json!({".": {}, "f:name": {}, "f:value": {}}))).collect();
    ("a list of items with keys", json!({"list": items}), json!({"f:list": fields}))
}

/// A list of numbers that has one owner, and a text.
fn list_of_one_owner(count: usize) -> (&'static str, Value, Value) {
    let text = "x".repeat(BYTES - 2 * count);
    ("a list of numbers", json!({"list": vec![1; count], "text": text}), json!({"f:list": {}, "f:text": {}}))
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
        suspended: None,
        excluded: false,
        governor: None,
        is_shared_with_advisor: false,
        exclusions_unclear: false,
        patchable: &PatchableKinds::none(),
        conditions: Conditions {
            consent: &consent,
            pool: PoolState::Ready,
            window: Window::Open,
            maintenance: &Maintenance::Always,
        },
    };
    let now = Now { wall: "2027-01-15T08:00:00Z".parse().unwrap(), monotonic: Moment::default() };
    let mut content = object.clone();
    content["metadata"]["resourceVersion"] = json!("1");
    let decided = mean(|| drop(std::hint::black_box(decide(&observed, now))));
    let inspected = mean(|| drop(std::hint::black_box(inspect(&observed, &content))));
    let texts = [object.to_string(), entries.to_string()];
    let bytes = texts[0].len() + texts[1].len();
    let parse = |text: &String| drop(std::hint::black_box(serde_json::from_str::<Value>(text)));
    // What was wanted and what is there.
    let parsed = mean(|| texts.iter().chain(&texts[..1]).for_each(parse));
    println!("  {name:<44} {bytes:>9} {:>9} {decided:>9.1?} {inspected:>9.1?} {parsed:>9.1?}", leaves(&object));
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

//! Properties of redaction, tested with random objects: a secret value is never shown, and a benign one always is.

use super::{Place, annotation, message};
use crate::content::{Changes, changes};
use crate::object::digest::Digest;
use crate::object::key::Kind;
use crate::reason::{Planned, Reason};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

/// The secret; no key, word or other value contains it.
const MARKER: &str = "hunter2";
/// Keys that name nothing secret.
const BENIGN: [&str; 10] =
    ["spec", "template", "containers", "replicas", "image", "labels", "ports", "config", "level", "params"];
/// Keys that name a secret.
const SECRET: [&str; 14] = [
    "password",
    "DB_PASSWORD",
    "token",
    "bearerToken",
    "tls.key",
    "apiKey",
    "basicAuth",
    "dsn",
    "connectionString",
    "userData",
    "clientSecret",
    "credentials",
    "kubeconfig",
    "contents",
];

/// A value that is secret because of its name or of what it is, in something whose names say nothing.
fn secret_part() -> impl Strategy<Value = Value> {
    let deep = select(vec![json!(MARKER), json!([MARKER]), json!({"a": MARKER}), json!([{"b": [MARKER]}])]);
    prop_oneof![
        (select(SECRET.to_vec()), deep.clone()).prop_map(|(key, value)| json!({key: value})),
        any::<bool>().prop_map(|first| {
            let (one, two) = (json!({"name": "A", "value": MARKER}), json!({"name": "B", "value": "x"}));
            json!({"env": if first { vec![one, two] } else { vec![two, one] }})
        }),
        deep.prop_map(|value| json!({"env": {"A": value}})),
        select(SECRET.to_vec()).prop_map(|name| json!([{"name": name, "value": MARKER}])),
        select(SECRET.to_vec()).prop_map(|name| json!(["--level=3", format!("--{name}"), MARKER])),
        select(SECRET.to_vec()).prop_map(|name| json!({"text": format!("a=1\n{name}={MARKER}\n")})),
        select(SECRET.to_vec()).prop_map(|name| json!({"text": json!({name: MARKER}).to_string()})),
        Just(json!({"source": format!("data:,{MARKER}")})),
        Just(json!({"url": format!("postgres://me:{MARKER}@host/db")})),
        Just(json!({"header": format!("Bearer {MARKER}")})),
    ]
}

/// The part somewhere in an object.
fn object_with(part: Value) -> impl Strategy<Value = Value> {
    let steps = vec((select(BENIGN.to_vec()), any::<bool>()), 1..5);
    (steps, any::<bool>()).prop_map(move |(steps, is_configuration)| {
        let inner = steps.into_iter().rev().fold(part.clone(), |inner, (key, in_list)| {
            let mut map = json!({"level": 1});
            map[key] = if in_list { json!([{"level": 2}, inner]) } else { inner };
            map
        });
        let (api_version, kind) = if is_configuration { ("v1", "ConfigMap") } else { ("apps/v1", "DaemonSet") };
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": inner})
    })
}

/// The object with another value in place of the secret, or without it.
fn other_than(object: &Value, is_changed: bool) -> Value {
    let text = object.to_string();
    if is_changed {
        serde_json::from_str(&text.replace(MARKER, "former")).unwrap()
    } else {
        json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": "x"}})
    }
}

fn config() -> ProptestConfig {
    // The number of cases comes from PROPTEST_CASES, which `make fuzz` sets.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Everything that is printed of changes: in events, log lines and the output of `status`.
fn printed(changes: &Changes) -> String {
    let needed = Reason::NeedsApproval {
        digest: Some(Digest::of(&json!(1))),
        restarts: Box::default(),
        planned: Box::new(Planned::Change { changes: changes.clone(), removed: Vec::new() }),
    };
    format!("{changes} {changes:?} {needed} {needed:?} {}", serde_json::to_string(&needed).unwrap())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_secret_value_is_never_shown(
        object in secret_part().prop_flat_map(object_with),
        is_changed: bool,
        lists_whole: bool,
        is_reversed: bool,
    ) {
        let other = other_than(&object, is_changed);
        let (wanted, live) = if is_reversed { (&other, &object) } else { (&object, &other) };
        let found = changes(wanted, live, lists_whole);
        prop_assert!(!printed(&found).contains(MARKER), "{}", printed(&found));
        prop_assert!(!found.is_empty() || is_reversed);
    }

    #[test]
    fn no_value_of_a_secret_is_shown(key in "[a-z]{1,9}", in_text: bool, is_new: bool) {
        let field = if in_text { "stringData" } else { "data" };
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, field: {&key: value}});
        let live = if is_new { json!({}) } else { secret("former") };
        let found = changes(&secret(MARKER), &live, false);
        prop_assert!(found.0.len() == 1 && !printed(&found).contains(MARKER), "{}", printed(&found));
    }

    #[test]
    fn a_dropped_patch_shows_no_secret_value(object in secret_part().prop_flat_map(object_with), op in select(vec!["add", "replace", "test"])) {
        let kind = Kind::new("apps/v1", "DaemonSet");
        let patch = json!([{"op": op, "path": "/spec/template", "value": object["spec"]}]).to_string();
        let shown = annotation(&kind, api::annotation::PATCH, &patch);
        prop_assert!(!shown.contains(MARKER), "{shown}");
        for path in ["/spec/template/spec/containers/0/env/0/value", "/spec/params/-/value", "/spec/command/1", "/data/db-password"] {
            let direct = json!([{"op": op, "path": path, "value": MARKER}]);
            prop_assert!(!annotation(&kind, api::annotation::PATCH, &direct.to_string()).contains(MARKER), "{path}");
        }
    }

    #[test]
    fn a_message_of_the_server_quotes_no_secret_value(
        key in select(SECRET.to_vec()),
        before in select(vec!["spec.", "data.", "spec.template.spec.", ""]),
        template in select(vec![
            "X \"x\" is invalid: PATH: Invalid value: \"VALUE\": too short",
            "X \"x\" is invalid: [spec.a: Invalid value: 3: no, PATH: Unsupported value: \"VALUE\": supported values: \"a\"]",
            "PATH: Duplicate value: map[string]interface {}{\"KEY\":\"VALUE\"}",
            "PATH: Invalid value: core.EnvVar{Name:\"KEY\", Value:\"VALUE\"}: no",
            "admission webhook \"w\" denied the request: KEY \"VALUE\" is weak",
            "admission webhook \"w\" denied the request: KEY=VALUE is weak",
            "admission webhook \"w\" denied the request: KEY: VALUE",
            ".PATH: expected map, got &{VALUE}",
        ]),
    ) {
        let path = format!("{before}{key}");
        let sent = template.replace("PATH", &path).replace("KEY", key).replace("VALUE", MARKER);
        let shown = message::redact(&Kind::new("v1", "X"), &sent);
        prop_assert!(!shown.contains(MARKER), "{shown}");
    }

    #[test]
    fn a_length_is_that_of_what_is_shown(object in secret_part().prop_flat_map(object_with), enough in 0..200_usize) {
        let place = Place::top(&Kind::new("apps/v1", "DaemonSet"));
        let length = place.shown(&object).map_or(0, |shown| shown.to_string().chars().count());
        prop_assert_eq!(place.shown_length(&object, usize::MAX), length);
        prop_assert_eq!(place.shown_length(&object, enough) > enough, length > enough);
    }

    #[test]
    fn a_benign_value_is_shown(steps in vec(select(BENIGN.to_vec()), 1..5), before in 0..100_i64, after in 100..200_i64) {
        let object = |value: i64| {
            let inner = steps.iter().rev().fold(json!(value), |inner, key| json!({*key: inner}));
            json!({"apiVersion": "v1", "kind": "X", "spec": inner})
        };
        let found = changes(&object(after), &object(before), false).to_string();
        prop_assert!(found.ends_with(&format!("({before} -> {after})")), "{found}");
    }
}

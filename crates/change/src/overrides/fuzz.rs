//! Properties of overrides, tested with random input: a few hundred cases in every test run, more with `make fuzz` and `FUZZ_SECONDS`.

use crate::fields::pattern::fits;
use crate::fields::pointer::Pointer;
use crate::object::key::Key;
use crate::overrides::Overrides;
use crate::overrides::allow::{PatchableKinds, explain};
use crate::overrides::corpus::{name_fits, nothing_gained, objects};
use crate::overrides::guards::OverrideGuards;
use crate::overrides::ignored_fields::IgnoredFields;
use crate::overrides::operation::Operation;
use crate::overrides::patch::{MAX_DEPTH, MAX_RESULT_BYTES, Patch};
use crate::overrides::steering::{Mode, Pause, Steering};
use crate::overrides::strict::{depth, size};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Steps of paths, valid and invalid.
const STEPS: [&str; 50] = [
    "spec",
    "spec",
    "spec",
    "data",
    "metadata",
    "labels",
    "annotations",
    "name",
    "namespace",
    "kind",
    "finalizers",
    "ownerReferences",
    "template",
    "template",
    "containers",
    "env",
    "valueFrom",
    "secretKeyRef",
    "resources",
    "limits",
    "nodeSelector",
    "tolerations",
    "affinity",
    "replicas",
    "ports",
    "selector",
    "externalIPs",
    "groups",
    "rules",
    "first",
    "second",
    "hostPath",
    "image",
    "0",
    "1",
    "-",
    "00",
    "+1",
    "-1",
    "",
    "a~1b",
    "~0",
    "~2",
    "platform.kubevirt.io~1managed-by",
    "value",
    "cpu",
    "nvidia.com~1gpu",
    "type",
    "helm.sh~1chart",
    "run.sh",
];

/// Paths of the objects under test, so that many operations have an effect.
const PATHS: [&str; 24] = [
    "",
    "/kind",
    "/metadata/name",
    "/metadata/labels",
    "/metadata/labels/team",
    "/metadata/annotations/note",
    "/spec",
    "/spec/ports",
    "/spec/ports/0",
    "/spec/ports/1/port",
    "/spec/ports/-",
    "/spec/sessionAffinity",
    "/data",
    "/data/first",
    "/data/new",
    "/spec/groups/0/rules/-",
    "/spec/groups/0",
    "/spec/template/spec/containers/0",
    "/spec/template/spec/containers/0/env",
    "/spec/template/spec/containers/0/env/-",
    "/spec/template/spec/containers/0/env/0",
    "/spec/template/spec/containers/0/resources",
    "/spec/template/spec/affinity",
    "/spec/template",
];

fn config() -> ProptestConfig {
    // The number of cases comes from PROPTEST_CASES, which `make fuzz` sets.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(PATHS.as_slice()).prop_map(str::to_owned),
        3 => vec(select(STEPS.as_slice()), 0..7).prop_map(|steps| steps.iter().map(|step| format!("/{step}")).collect()),
        2 => (select(PATHS.as_slice()), select(STEPS.as_slice())).prop_map(|(path, step)| format!("{path}/{step}")),
        1 => vec(select(STEPS.as_slice()), 1..5).prop_map(|steps| steps.join("/")),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-z\u{0}-\u{20}\"\\\\é]{0,8}".prop_map(Value::from),
        select(["LD_PRELOAD", "http_proxy", "A", "a$(B)"].as_slice()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 24, 4, |inner| {
        let key = prop_oneof![select(STEPS.as_slice()).prop_map(str::to_owned), "[a-z]{1,3}"];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(key, inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

fn operation() -> impl Strategy<Value = Value> {
    let op =
        prop_oneof![30 => select(["add", "remove", "replace", "move", "copy", "test"].as_slice()), 1 => Just("merge")];
    let extra = prop_oneof![
        20 => Just(None),
        1 => select(["Path", "PATH", "from", "value", "x"].as_slice()).prop_map(Some)
    ];
    (op, path(), path(), value(), extra).prop_map(|(op, path, from, value, extra)| {
        let mut operation = json!({"op": op, "path": path});
        match op {
            "add" | "replace" | "test" | "merge" => operation["value"] = value,
            "move" | "copy" => operation["from"] = json!(from),
            _ => {}
        }
        if let Some(extra) = extra {
            operation[extra] = json!(from);
        }
        operation
    })
}

/// A patch, sometimes with a few characters changed.
fn patch() -> impl Strategy<Value = String> {
    let whole = || vec(operation(), 0..8).prop_map(|operations| json!(operations).to_string());
    let damage = vec((any::<proptest::sample::Index>(), any::<char>()), 1..4);
    prop_oneof![
        12 => whole(),
        // A single operation is not refused for the mistakes of others.
        12 => operation().prop_map(|operation| json!([operation]).to_string()),
        2 => (whole(), damage).prop_map(|(text, damage)| {
            let mut characters: Vec<char> = text.chars().collect();
            for (index, character) in damage {
                let index = index.index(characters.len());
                characters[index] = character;
            }
            characters.into_iter().collect()
        }),
        1 => any::<String>(),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    // Of the sensitive kinds, which refuse every patch, one is enough.
    let is_sensitive = |kind: &str| explain(kind, &PatchableKinds::none()).sensitive;
    let objects = objects().iter().filter(|(name, _)| *name == "MachineConfig" || !is_sensitive(name));
    select(objects.map(|(_, object)| object.clone()).collect::<Vec<_>>())
}

fn ignored() -> impl Strategy<Value = String> {
    prop_oneof![5 => vec(path(), 1..4).prop_map(|paths| paths.join(",")), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_patch_changes_only_open_fields(text in patch(), object in object()) {
        let key = Key::of(&object).unwrap();
        if let Ok(patch) = Patch::parse(&text, &key, &PatchableKinds::none()) {
            let result = patch.apply(&object);
            prop_assert_eq!(&result, &patch.apply(&object));
            if let Ok(result) = result {
                prop_assert_eq!(nothing_gained(&object, &result), Ok(()));
                prop_assert!(result.to_string().len() <= MAX_RESULT_BYTES && depth(&result) <= MAX_DEPTH);
            }
        }
    }

    #[test]
    fn an_operation_agrees_with_another_implementation(
        items in vec(operation(), 1..5), object in prop_oneof![object(), value()]
    ) {
        for item in items {
            let (ours, theirs) = (Operation::parse(item.clone(), OverrideGuards::ALL), serde_json::from_value(item));
            let (Ok(ours), Ok(theirs)) = (ours, theirs) else { continue };
            let (mut mine, mut other) = (object.clone(), object.clone());
            let done = ours.run(&mut mine, OverrideGuards::ALL);
            let reference = json_patch::patch(&mut other, &[theirs]);
            prop_assert_eq!(done.is_ok(), reference.is_ok(), "{:?} and {:?}", done, reference);
            if done.is_ok() {
                prop_assert_eq!(mine, other);
            }
        }
    }

    #[test]
    fn the_size_of_a_value_is_never_underestimated(value in value()) {
        let (guess, real) = (size(&value), value.to_string().len());
        prop_assert!(real <= guess && guess <= real * 27 + 8, "{} for {}", guess, real);
    }

    #[test]
    fn a_pointer_is_printed_as_it_was_parsed(text in prop_oneof![path(), any::<String>()], steps in vec(any::<String>(), 0..5)) {
        if let Ok(pointer) = Pointer::parse(&text) {
            prop_assert_eq!(pointer.to_string(), text);
        }
        let pointer = Pointer::from_steps(steps);
        prop_assert_eq!(Pointer::parse(&pointer.to_string()), Ok(pointer));
    }

    #[test]
    fn ignoring_fields_is_idempotent_and_never_changes_the_identity(text in ignored(), object in object()) {
        if let Ok(ignored_fields) = IgnoredFields::parse(&text, OverrideGuards::ALL) {
            let mut once = object.clone();
            if ignored_fields.remove_from(&mut once).is_ok() {
                let mut twice = once.clone();
                prop_assert_eq!(ignored_fields.remove_from(&mut twice), Ok(()));
                prop_assert_eq!(&once, &twice);
                prop_assert_eq!(Key::of(&once), Key::of(&object));
                prop_assert!(part_of(&once, &object), "{} is not part of {}", once, object);
            }
        }
    }

    #[test]
    fn patch_and_ignored_fields_together_never_change_the_identity(patch in patch(), ignored in ignored(), object in object()) {
        let key = Key::of(&object).unwrap();
        if let Ok(overrides) = Overrides::read(Some(&patch), Some(&ignored), &key, &PatchableKinds::none())
            && let Ok(result) = overrides.apply(&object)
        {
            prop_assert_eq!(Key::of(&result), Some(key));
            prop_assert_eq!(overrides.apply(&object), Ok(result));
        }
    }

    #[test]
    fn pattern_matching_agrees_with_exhaustive_matching(pattern in "[ab*?é]{0,8}", name in "[abé]{0,9}") {
        let characters = |text: &str| text.chars().collect::<Vec<char>>();
        prop_assert_eq!(fits(&pattern, &name), name_fits(&characters(&pattern), &characters(&name)));
    }

    #[test]
    fn an_annotation_that_cannot_be_parsed_never_permits_a_write(
        mode in prop_oneof![any::<String>(), Just(String::new())], pause in prop_oneof![any::<String>(), "[0-9TZ:.+-]{0,25}"]
    ) {
        let annotations = BTreeMap::from([
            (api::annotation::MODE.to_owned(), mode.clone()),
            (api::annotation::RECONCILE_PAUSED.to_owned(), pause.clone()),
        ]);
        if let Ok(steering) = Steering::read(&annotations) {
            let is_one_of = |text: &str, values: &[&str]| values.iter().any(|value| text.trim().eq_ignore_ascii_case(value));
            prop_assert!(steering.mode == Mode::Unmanaged || is_one_of(&mode, &["", "managed"]));
            prop_assert!(steering.pause != Pause::No || is_one_of(&pause, &["", "false"]));
        }
    }
}

/// Whether every field of one value is in the other with the same value.
fn part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| part_of(value, whole)))
        }
        _ => part == whole,
    }
}

//! Properties of exclusions, of the last good overrides, of removal and of whole clusters, with input that nobody would write.

mod agreement;
mod people;
mod simulation;
mod states;

use crate::corpus::{PREFIX, applied, decided, objects};
use crate::decision::Verdict;
use crate::exclusion::Exclusions;
use crate::glob::Glob;
use crate::removal::{Cause, Removal, decide_removal};
use change::consent::ApprovalPolicy;
use change::gate::{Conditions, PoolState};
use change::{
    Consent, Effect, Impact, Key, Kind, Live, ManagedFields, Moment, Now, Overrides, PatchableKinds, Restarts,
};
use change::{Maintenance, Window};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What proptest takes where nobody says how many.
const DEFAULT_CASES: u32 = 256;

fn config() -> ProptestConfig {
    // The number of cases comes from PROPTEST_CASES, which `make fuzz` sets.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// The same for whole clusters, of which 200 take some seconds.
fn seeds() -> ProptestConfig {
    let config = config();
    ProptestConfig { cases: if config.cases == DEFAULT_CASES { 200 } else { config.cases }, ..config }
}

/// How many acts a cluster sees: few, to be fast, and now and then many.
fn acts() -> impl Strategy<Value = usize> {
    prop_oneof![9 => 0..14_usize, 1 => 0..40_usize]
}

/// A patch for the Service of the scene: good, refused, or not fitting.
fn patch() -> impl Strategy<Value = Option<String>> {
    let path = select(
        [
            "/spec/sessionAffinity",
            "/spec/type",
            "/spec/ports/0/port",
            "/spec/ports/7",
            "/spec/selector",
            "/metadata/name",
            "/metadata/labels/x",
            "x",
        ]
        .as_slice(),
    );
    let one = (select(["add", "replace", "remove"].as_slice()), path, 0..3_i64).prop_map(|(op, path, value)| {
        let mut operation = json!({"op": op, "path": path});
        if op != "remove" {
            operation["value"] = json!(value.to_string());
        }
        operation
    });
    prop_oneof![
        1 => Just(None),
        8 => vec(one, 0..3).prop_map(|operations| Some(json!(operations).to_string())),
        1 => any::<String>().prop_map(Some),
    ]
}

fn masks() -> impl Strategy<Value = Option<String>> {
    let mask = select(
        ["/spec/type", "/spec/selector/app", "/spec/ports", "/spec/ports/0", "/metadata", "", "spec"].as_slice(),
    );
    prop_oneof![1 => Just(None), 2 => vec(mask, 1..3).prop_map(|masks| Some(masks.join(",")))]
}

/// Lists of rules, near misses and noise.
fn exclusions() -> impl Strategy<Value = String> {
    let scalar = select(
        [
            "Service", "virt-*", "a?", "'v[a-c]'", "'[^a]?'", "\"\"", "7", "~", "[a]", "'x y'", "*a", "&a b", "{}",
            "a: b",
        ]
        .as_slice(),
    );
    let key = select(["kind", "kind", "name", "name", "namespace", "Kind", "x"].as_slice());
    let rule = vec((key, scalar), 0..4).prop_map(|fields| {
        let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        format!("- {{{}}}\n", fields.join(", "))
    });
    let pair = "[A-Za-z]{0,4}[/ ]{0,2}[a-z*?.\\[\\]^-]{0,5}";
    prop_oneof![
        4 => vec(rule, 0..4).prop_map(|rules| rules.concat()),
        2 => vec(pair, 0..4).prop_map(|pairs| pairs.join(",")),
        2 => "[-{}\\[\\]:,&*!|>'\"%@ \n\ta-z]{0,40}",
        1 => any::<String>(),
    ]
}

/// The desired state with these overrides, if they can be honoured.
fn honoured(bare: &Value, patch: Option<&str>, masks: Option<&str>) -> Option<Value> {
    let overrides = Overrides::read(patch, masks, &Key::of(bare)?, &PatchableKinds::none()).ok()?;
    overrides.apply(bare).ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_last_good_overrides_are_kept_while_new_ones_are_refused(
        patch in patch(), masks in masks(), good_patch in patch(), good_masks in masks()
    ) {
        let bare = &objects()["Service"];
        let overrides = [("patch", &patch), ("ignore-fields", &masks), ("last-good-patch", &good_patch), ("last-good-ignore-fields", &good_masks)];
        let written = overrides.into_iter().filter_map(|(key, text)| Some((format!("{PREFIX}{key}"), text.clone()?)));
        let (verdict, refused) = decided(bare, written.collect::<BTreeMap<_, _>>());
        let now = honoured(bare, patch.as_deref(), masks.as_deref());
        let before = honoured(bare, good_patch.as_deref(), good_masks.as_deref());
        let key = Key::of(bare).unwrap();
        let was_honoured = Overrides::read(good_patch.as_deref(), good_masks.as_deref(), &key, &PatchableKinds::none()).is_ok();
        if now.is_none() && before.is_none() && was_honoured {
            // An override that was honoured does not fit any more: nothing is written, so nothing is lost.
            prop_assert!(matches!(verdict, Verdict::Hold(_)));
        } else {
            prop_assert_eq!(refused, now.is_none());
            prop_assert_eq!(applied(verdict), Some(now.or(before).unwrap_or_else(|| bare.clone())));
        }
    }

    #[test]
    fn a_list_of_exclusions_is_broken_or_says_what_it_means(text in exclusions()) {
        if let Exclusions::Rules(rules) = Exclusions::read(Some(&text)) {
            prop_assert!(rules.len() <= 200);
            for rule in &rules {
                prop_assert!(!rule.kind.is_empty() && rule.kind.chars().all(|character| character.is_ascii_alphanumeric()));
                prop_assert!(!rule.name.as_str().is_empty() && rule.namespace.as_ref().is_none_or(|glob| !glob.as_str().is_empty()));
                // A rule leaves alone what it names, and nothing of another kind.
                let name = rule.name.example();
                let namespace = rule.namespace.as_ref().map_or(Some("any".to_owned()), Glob::example);
                let (Some(name), Some(namespace)) = (name, namespace) else { continue };
                let key = Key { kind: Kind::new("v1", &rule.kind), namespace, name };
                let one = Exclusions::Rules(vec![rule.clone()]);
                prop_assert!(one.excludes(&key), "{:?}", rule);
                let kind = Kind::new("v1", &format!("{}x", rule.kind));
                let other = Key { kind, ..key };
                prop_assert!(!one.excludes(&other));
            }
        }
    }

    #[test]
    fn only_what_we_created_is_ever_deleted(
        (kind, cause, origin, claimed) in (
            select(["v1 ConfigMap", "v1 Namespace", "hco.kubevirt.io/v1 HyperConverged", "loki.grafana.com/v1 LokiStack",
                "machineconfiguration.openshift.io/v1 MachineConfig", "apiextensions.k8s.io/v1 CustomResourceDefinition"].as_slice()),
            select([Cause::OptedOut, Cause::NotNamed, Cause::Tombstone].as_slice()),
            prop_oneof![Just(None), Just(Some("created".to_owned())), Just(Some("adopted".to_owned())), any::<String>().prop_map(Some)],
            select([None, Some("created"), Some("other")].as_slice()),
        ),
        steering in vec((select(["mode", "reconcile-paused", "patch"].as_slice()), select(["unmanaged", "managed", "true", "false", ""].as_slice())), 0..3),
        (labelled, never_pruned, prune, suspended) in any::<(bool, bool, bool, bool)>(),
        (excluded, governed, policy, high) in (any::<bool>(), any::<bool>(), select([ApprovalPolicy::Required, ApprovalPolicy::Waived].as_slice()), any::<bool>()),
    ) {
        let fields = match claimed {
            Some("created") => json!({"f:metadata": {"f:annotations": {"f:platform.kubevirt.io/origin": {}}}}),
            _ => json!({"f:data": {}}),
        };
        let entries: Vec<Value> = claimed.map(|_| json!({"manager": api::FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields})).into_iter().collect();
        let mut annotations: BTreeMap<String, String> = steering.iter().map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned())).collect();
        annotations.extend(origin.clone().map(|word| (api::annotation::ORIGIN.to_owned(), word)));
        let live = Live {
            uid: "u".into(),
            resource_version: "7".into(),
            managed_fields: ManagedFields::new(&json!(entries).to_string()),
            annotations: annotations.clone(),
            labelled,
            created: Some(Default::default()),
            ..Live::default()
        };
        let (api_version, kind) = kind.split_once(' ').unwrap();
        let key = Key { kind: Kind::new(api_version, kind), namespace: "n".into(), name: "x".into() };
        let (consent, impact) = (Consent { policy, ..Consent::default() }, if high { Impact::High } else { Impact::Low });
        let conditions = Conditions { consent: &consent, pool: PoolState::Ready, window: Window::Open, maintenance: &Maintenance::Always };
        let removal = Removal { key: &key, cause, live: Some(&live), impact, restarts: &Restarts::default(), source: None, hco_created: Some(Default::default()), never_pruned, prune, suspended: suspended.then_some("unclear"), excluded, governor: governed.then_some("density"), many: None, conditions };
        match decide_removal(&removal, Now { wall: Default::default(), monotonic: Moment::default() }).verdict {
            Verdict::Write(Effect::Delete { uid, resource_version }, _) => {
                prop_assert_eq!((uid.as_str(), resource_version.as_str()), ("u", "7"));
                prop_assert!(origin.as_deref() == Some("created") && claimed == Some("created") && labelled, "it is ours");
                prop_assert!(kind == "ConfigMap" || kind == "MachineConfig", "{kind}");
                prop_assert!(prune && !never_pruned && !suspended && !excluded && !governed);
                prop_assert!(annotations.get("platform.kubevirt.io/mode").is_none_or(|mode| mode.is_empty() || mode == "managed"));
            }
            Verdict::Write(Effect::HandBack { patch }, _) => {
                prop_assert!(labelled && origin.is_some() && claimed.is_some() && !suspended && !excluded && !governed);
                prop_assert_eq!(patch["metadata"]["uid"].as_str(), Some("u"));
            }
            Verdict::InSync | Verdict::Hold(_) => {}
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

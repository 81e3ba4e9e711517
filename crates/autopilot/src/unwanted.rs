//! Objects that are not wanted and have to be removed, if they exist.

use crate::evaluate::{AssetResult, DesiredObject, Evaluation, Outcome, is_never_managed};
use crate::removal::Cause;
use catalog::Tombstone;
use change::{Desired, Impact, Key, Kind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object that has to be removed, if it exists.
#[derive(Debug, Clone)]
pub struct Unwanted {
    /// Its asset, or the file of its tombstone.
    pub asset: String,
    /// Its place in the order of writes.
    pub order: i64,
    /// Why it has to be removed.
    pub cause: Cause,
    /// What is known of it.
    pub object: Arc<DesiredObject>,
}

impl Evaluation {
    /// What users do not want, and what former releases created; never what another asset renders or may render, and nothing while
    /// everything is off. `is_namespaced` answers for a kind that is served.
    pub fn unwanted(
        &self,
        tombstones: &[Tombstone],
        is_namespaced: impl Fn(&Kind) -> Option<bool>,
    ) -> BTreeMap<Key, Unwanted> {
        let mut unwanted = BTreeMap::new();
        if self.is_off {
            return unwanted;
        }
        for outcome in &self.outcomes {
            if let AssetResult::Unwanted { cause, object: Some(object), .. } = &outcome.result {
                let (asset, order, cause) = (outcome.asset.clone(), outcome.order, *cause);
                unwanted.insert(object.key.clone(), Unwanted { asset, order, cause, object: object.clone() });
            }
        }
        for tombstone in tombstones {
            if let Some(key) = tombstone_key(tombstone, &is_namespaced) {
                let former = Unwanted {
                    asset: tombstone.file.clone(),
                    // Tombstones are deleted before anything is created.
                    order: i64::MIN,
                    cause: Cause::Tombstone,
                    object: of_former_release(key.clone()),
                };
                unwanted.entry(key).or_insert(former);
            }
        }
        unwanted.retain(|key, _| !self.outcomes.iter().any(|outcome| is_still_desired_by(outcome, key)));
        unwanted
    }
}

/// Whether an asset renders this object, or may render it once it knows more.
fn is_still_desired_by(outcome: &Outcome, key: &Key) -> bool {
    match (&outcome.result, &outcome.key, &outcome.kind) {
        (AssetResult::Unwanted { .. }, _, _) => false,
        (_, Some(rendered), _) => rendered.is_same_object(key),
        // Its name is not known yet.
        (AssetResult::Needs(_) | AssetResult::Error(_) | AssetResult::Governed { .. }, None, Some(kind)) => {
            (&kind.group, &kind.kind) == (&key.kind.group, &key.kind.kind)
        }
        _ => false,
    }
}

/// The object of a tombstone; `None` if its kind is not served.
fn tombstone_key(tombstone: &Tombstone, is_namespaced: impl Fn(&Kind) -> Option<bool>) -> Option<Key> {
    let kind = Kind::new(&tombstone.api_version, &tombstone.kind);
    let is_namespaced = is_namespaced(&kind).filter(|_| !is_never_managed(&kind))?;
    // Some tombstones name a namespace for a cluster-scoped object.
    let namespace = tombstone.namespace.clone().filter(|_| is_namespaced).unwrap_or_default();
    Some(Key { kind, namespace, name: tombstone.name.clone() })
}

fn of_former_release(key: Key) -> Arc<DesiredObject> {
    let impact = Impact::implied_by(&key.kind.group, &key.kind.kind);
    let (desired, source) = (Desired::of(&Value::Null), String::new());
    Arc::new(DesiredObject { key, desired, impact, source, never_pruned: false, documents: Vec::new(), read: None })
}

#[cfg(test)]
mod tests {
    use crate::evaluate::{AssetResult, Before, evaluate};
    use catalog::{Catalog, Facts, Files};
    use expect_test::{Expect, expect};
    use serde_json::json;
    use std::collections::BTreeMap;

    /// A ConfigMap named like its asset; the one called `asking` needs a look-up.
    const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Params.name }}, namespace: n}\n\
        {{ if eq .Params.name \"asking\" }}data: {x: {{ getConfigMapData \"n\" \"m\" \"k\" }}}{{ end }}\n";

    fn catalog(assets: &[(&str, &str)], tombstones: &str) -> Catalog {
        let asset = |(name, more): &(&str, &str)| {
            format!("  - {{name: {name}, path: active/a.yaml.tpl, template_params: {{name: {name}}}, {more}}}\n")
        };
        let names: Vec<&str> = assets.iter().map(|(name, _)| *name).collect();
        let entries: String = assets.iter().map(asset).collect();
        let catalogue = format!("assets:\n{entries}excluded_assets: [{}]\n", names.join(", "));
        let files = [
            ("active/metadata.yaml", catalogue.as_str()),
            ("active/a.yaml.tpl", TEMPLATE),
            ("tombstones/old.yaml", tombstones),
        ];
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        Catalog::load(Files::new(files)).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn tombstone(api_version: &str, kind: &str, name: &str) -> String {
        let label = "platform.kubevirt.io/managed-by: virt-platform-autopilot";
        format!(
            "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: n, labels: {{{label}}}}}\n---\n"
        )
    }

    const ALWAYS: &str = "install: always";
    const OPT_IN: &str = "install: opt-in, conditions: [{type: annotation, key: ask, value: \"true\"}]";
    const GPU: &str = "install: opt-in, conditions: [{type: hardware-detection, detector: gpuPresent}]";

    fn check(annotations: &serde_json::Value, assets: &[(&str, &str)], tombstones: &str, expected: &Expect) {
        let catalog = catalog(assets, tombstones);
        let hco = json!({"metadata": {"name": "h", "namespace": "n", "annotations": annotations}});
        let evaluation = evaluate(&catalog, &Facts { hco, ..Facts::default() }, false, Before::default());
        let served = |kind: &change::Kind| (kind.kind != "Unserved").then_some(kind.kind == "ConfigMap");
        let removed: Vec<String> = evaluation
            .unwanted(&catalog.tombstones, served)
            .into_values()
            .map(|unwanted| format!("{} {:?}", unwanted.object.key, unwanted.cause))
            .collect();
        let included =
            evaluation.outcomes.iter().filter(|outcome| matches!(outcome.result, AssetResult::Included(_))).count();
        expected.assert_eq(&format!("{included} wanted; removed: {}", removed.join(", ")));
    }

    #[test]
    fn what_users_do_not_want_is_removed_and_what_facts_do_not_allow_stays() {
        let assets = [("a", ALWAYS), ("b", OPT_IN), ("c", GPU)];
        check(&json!({}), &assets, "", &expect!["1 wanted; removed: ConfigMap b OptedOut"]);
        check(&json!({"ask": "true"}), &assets, "", &expect!["2 wanted; removed: "]);
        let list = |names: &str| json!({"platform.kubevirt.io/autopilot": names, "ask": "true"});
        check(&list("b"), &assets, "", &expect!["1 wanted; removed: ConfigMap a NotNamed, ConfigMap c NotNamed"]);
        check(&list("b, typo"), &assets, "", &expect!["0 wanted; removed: "]);
        check(&list("false"), &assets, &tombstone("v1", "ConfigMap", "old"), &expect!["0 wanted; removed: "]);
    }

    #[test]
    fn a_tombstone_never_removes_what_an_asset_may_render() {
        let old = tombstone("v1", "ConfigMap", "old");
        let both = |name: &str| format!("{old}{}", tombstone("v1beta9", "ConfigMap", name));
        check(&json!({}), &[("a", ALWAYS)], &old, &expect!["1 wanted; removed: ConfigMap old Tombstone"]);
        check(&json!({}), &[("a", ALWAYS)], &both("a"), &expect!["1 wanted; removed: ConfigMap old Tombstone"]);
        check(&json!({}), &[("c", GPU)], &both("c"), &expect!["0 wanted; removed: ConfigMap old Tombstone"]);
        check(&json!({}), &[("asking", ALWAYS)], &old, &expect!["0 wanted; removed: "]);
    }

    #[test]
    fn tombstones_of_kinds_that_are_not_served_or_never_managed_are_ignored() {
        let tombstones = [tombstone("v1", "Unserved", "x"), tombstone("v1", "Node", "x"), tombstone("v1", "Wide", "x")];
        check(&json!({}), &[("a", ALWAYS)], &tombstones.concat(), &expect!["1 wanted; removed: Wide x Tombstone"]);
    }
}

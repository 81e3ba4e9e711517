//! The properties of the pack that benchmarks and tests rely on.

use super::{files, write};
use crate::pack;
use catalog::{Catalog, Facts, Install, Rendered};
use change::Key;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn load() -> Catalog {
    pack::load(files().unwrap().into_iter().map(|(path, text)| (path, text.into_bytes())).collect()).unwrap()
}

fn objects(catalog: &Catalog) -> Vec<Value> {
    let hco = json!({"metadata": {"name": api::hco::NAME, "namespace": api::hco::NAMESPACE}, "spec": {}});
    let facts = Facts { hco, ..Facts::default() };
    let render = |asset| match catalog::render(catalog, asset, &facts) {
        Rendered::Object(object) => object,
        other => panic!("{}: {other:?}", asset.name),
    };
    catalog.assets.iter().map(render).collect()
}

#[test]
fn the_pack_has_eighty_unconditional_assets() {
    let catalog = load();
    assert_eq!(catalog.assets.len(), 80);
    assert!(catalog.assets.iter().all(|asset| asset.install == Install::Always && asset.conditions.is_empty()));
    let orders: BTreeSet<i64> = catalog.assets.iter().map(|asset| asset.reconcile_order).collect();
    assert_eq!(orders, BTreeSet::from([0, 1, 2, 3, 20]));
    let featured = |asset: &catalog::Asset| {
        catalog.features.iter().any(|feature| {
            feature.assets.contains(&asset.name)
                || asset.group.as_ref().is_some_and(|group| feature.groups.contains(group))
        })
    };
    assert!(catalog.assets.iter().all(featured));
}

#[test]
fn the_eighty_objects_are_distinct_and_of_twenty_kinds() {
    let catalog = load();
    let keys: Vec<Key> = objects(&catalog).iter().map(|object| Key::of(object).unwrap()).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 80);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, asset) in keys.iter().zip(&catalog.assets) {
        assert_eq!(key.kind.kind, asset.component);
        *kinds.entry(&key.kind.kind).or_default() += 1;
    }
    assert_eq!((kinds.len(), kinds.values().all(|count| *count == 4)), (20, true), "{kinds:?}");
}

#[test]
fn every_object_has_the_common_label_and_no_annotations() {
    for object in objects(&load()) {
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/part-of"], "virtpilot-bench", "{object}");
        assert!(object["metadata"].get("annotations").is_none(), "{object}");
    }
}

#[test]
fn the_objects_have_realistic_sizes() {
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for object in objects(&load()) {
        *sizes.entry(object["kind"].as_str().unwrap().to_owned()).or_default() += object.to_string().len();
    }
    let all: usize = sizes.values().sum();
    assert!((270_000..330_000).contains(&all), "{all}: {sizes:?}");
    for (kind, least) in [("MachineConfig", 15_000), ("PrometheusRule", 20_000), ("PersesDashboard", 9_000)] {
        assert!(sizes[kind] >= 4 * least, "{kind}: {sizes:?}");
    }
}

#[test]
fn the_role_names_every_object_and_has_no_wildcard() {
    let role = &files().unwrap()["role.yaml"];
    assert!(!role.contains('*'), "{role}");
    for object in objects(&load()) {
        assert!(role.contains(&format!("{}", object["metadata"]["name"])), "{object}");
    }
    assert!(role.contains("resources: [securitycontextconstraints]\n"), "{role}");
}

#[test]
fn the_pack_is_deterministic_and_overwrites_no_other_pack() {
    assert_eq!(files().unwrap(), files().unwrap());
    let folder = tempfile::tempdir().unwrap();
    write(folder.path()).unwrap();
    write(folder.path()).unwrap();
    for (path, text) in files().unwrap() {
        assert_eq!(std::fs::read_to_string(folder.path().join(&path)).unwrap(), text, "{path}");
    }
    let catalogue = folder.path().join(super::CATALOGUE);
    std::fs::write(&catalogue, "assets: []\n").unwrap();
    assert!(write(folder.path()).unwrap_err().to_string().contains("belongs to another pack"));
    assert_eq!(std::fs::read_to_string(catalogue).unwrap(), "assets: []\n");
}

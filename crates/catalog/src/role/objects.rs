//! The object of an asset and the kinds that its template looks up, found without a cluster.

use super::LookedUp;
use crate::cluster::facts::Facts;
use crate::cluster::hardware::Hardware;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::Asset;
use crate::pack::catalog::Catalog;
use crate::pack::condition::Condition;
use crate::render::{Rendered, render};
use change::{Key, Kind};
use serde_json::{Map, json};
use std::collections::BTreeSet;

/// The limit of rendering rounds for templates that keep needing more queries.
const ROUNDS: usize = 8;

/// The key of an asset's object, rendered for a cluster with the HyperConverged in this namespace in which all conditions of the asset
/// hold. Also collects the kinds that the template queries. A name that depends on anything else cannot be granted by name.
pub(super) fn key(
    catalog: &Catalog,
    asset: &Asset,
    namespace: &str,
    reads: &mut BTreeSet<LookedUp>,
) -> Result<Key, String> {
    let declared = asset.reads.iter().flatten();
    reads.extend(declared.map(|read| looked_up(&read.api_version, &read.kind, read.name.is_some())));
    let mut leaves = asset.conditions.iter().flat_map(Condition::leaves);
    if leaves.any(|condition| matches!(condition, Condition::KubevirtFeatureGate { .. })) {
        reads.insert(looked_up("kubevirt.io/v1", "KubeVirt", false));
    }
    let key = match rendered(catalog, asset, assume(asset, namespace, "image", "true"), reads)? {
        Some(key) => key,
        None => catalog.plain_key(asset).ok_or_else(|| {
            format!(
                "the object of asset {} is unknown: it renders to nothing although all its conditions hold, and {} does not contain \
                 apiVersion, kind and metadata.name literally",
                asset.name, asset.path
            )
        })?,
    };
    // A template that fails there is no proof that the name differs.
    let elsewhere = rendered(catalog, asset, elsewhere(asset, namespace), reads).ok().flatten();
    match elsewhere.filter(|other| (&other.kind, &other.name) != (&key.kind, &key.name)) {
        None => Ok(key),
        Some(other) => Err(format!(
            "the object of asset {} is unknown: {} computes it from facts about the cluster ({} {} on one cluster, {} {} on another); \
             write apiVersion, kind and metadata.name literally",
            asset.name, asset.path, key.kind.kind, key.name, other.kind.kind, other.name
        )),
    }
}

fn looked_up(api_version: &str, kind: &str, by_name: bool) -> LookedUp {
    LookedUp { kind: Kind::new(api_version, kind), by_name }
}

/// The key of the object that an asset renders from these facts, if it renders any; queries find nothing.
fn rendered(
    catalog: &Catalog,
    asset: &Asset,
    mut facts: Facts,
    reads: &mut BTreeSet<LookedUp>,
) -> Result<Option<Key>, String> {
    for _ in 0..ROUNDS {
        match render(catalog, asset, &facts) {
            Rendered::Object(object) => {
                return Key::of(&object).map(Some).ok_or_else(|| format!("asset {} has no name", asset.name));
            }
            Rendered::Needs(queries) => {
                for query in queries {
                    reads.extend(match &query {
                        Query::Object { api_version, kind, .. } => Some(looked_up(api_version, kind, true)),
                        Query::List { api_version, kind } => Some(looked_up(api_version, kind, false)),
                        Query::Crd { .. } => None,
                    });
                    facts.answers.insert(query, Answer::Absent);
                }
            }
            Rendered::Broken(why) => return Err(format!("asset {} cannot be rendered: {why}", asset.name)),
            Rendered::Empty | Rendered::NotApplicable(_) | Rendered::Held(_) => break,
        }
    }
    Ok(None)
}

/// The facts of another cluster in which all conditions of an asset hold: everything that a name must not depend on is different.
fn elsewhere(asset: &Asset, namespace: &str) -> Facts {
    let mut facts = assume(asset, namespace, "elsewhere", "elsewhere");
    let topology = &mut facts.topology;
    (topology.control_plane_topology, topology.cloud_provider) = ("Elsewhere".into(), "Elsewhere".into());
    (topology.master_count, topology.worker_count, topology.total_node_count) = (97, 89, 186);
    facts.cluster_version = "4.99.97".into();
    facts
}

/// The facts of a cluster in which all conditions of an asset hold; `image` and `value` are the images and annotations that may have
/// any value.
fn assume(asset: &Asset, namespace: &str, image: &str, value: &str) -> Facts {
    let (mut annotations, mut gates, mut facts) = (Map::new(), Vec::new(), Facts::default());
    let (pci_devices_present, numa_nodes_present, vfio_capable) = (true, true, true);
    let (usb_devices_present, gpu_present) = (true, true);
    facts.hardware =
        Hardware { pci_devices_present, numa_nodes_present, vfio_capable, usb_devices_present, gpu_present };
    for condition in asset.conditions.iter().flat_map(Condition::leaves) {
        match condition {
            Condition::Annotation { key, value: wanted } => {
                annotations.insert(key.clone(), json!(wanted.as_deref().unwrap_or(value)));
            }
            Condition::FeatureGate { value } => gates.push(json!({"name": value, "state": "Enabled"})),
            Condition::Image { key } => {
                facts.images.insert(key.clone(), image.into());
            }
            Condition::HardwareDetection { .. }
            | Condition::HcoFieldUnconfigured { .. }
            | Condition::Topology { .. }
            | Condition::KubevirtFeatureGate { .. }
            | Condition::Any { .. } => {}
        }
    }
    let metadata = json!({"name": api::hco::NAME, "namespace": namespace, "annotations": annotations, "labels": {}});
    let api_version = format!("{}/{}", api::hco::GROUP, api::hco::VERSIONS[0]);
    let spec = if gates.is_empty() { json!({}) } else { json!({"featureGates": gates}) };
    facts.hco = json!({"apiVersion": api_version, "kind": api::hco::KIND, "metadata": metadata, "spec": spec});
    facts
}

//! The CRDs as their types say: that of `VirtPlatformConfig` before the profiles of a pack are added, and those of the fleet.

use super::File;
use api::advisor::VirtPlatformConfig;
use api::fleet::{HypervisorCluster, HypervisorMachineTemplate, MachineClaim, RunnerPool};
use kube_core::CustomResourceExt;
use serde_json::Value;

/// After a change of the types, generate twice: the packages are made from the files as they were compiled in.
pub(super) fn files() -> anyhow::Result<[File; 2]> {
    let fleet = [HypervisorCluster::crd(), HypervisorMachineTemplate::crd(), RunnerPool::crd(), MachineClaim::crd()];
    let mut fleet = serde_json::to_value(fleet)?;
    without_unsigned(&mut fleet);
    let file = |path: &str, text: String| File { path: path.to_owned(), text: format!("{text}\n") };
    Ok([
        file("crates/catalog/src/profile/crd.json", serde_json::to_string_pretty(&VirtPlatformConfig::crd())?),
        file("crates/install/src/fleet/crds.json", serde_json::to_string_pretty(&fleet)?),
    ])
}

/// Takes out the formats of unsigned numbers, which an API server does not know and warns of; their minimum stays.
fn without_unsigned(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_unsigned);
        }
        Value::Array(items) => items.iter_mut().for_each(without_unsigned),
        _ => {}
    }
}

//! The CRDs as their types say: that of `VirtPlatformConfig` before the profiles of a pack are added, and those of the fleet.

use super::File;
use api::advisor::VirtPlatformConfig;
use api::fleet::{HypervisorCluster, HypervisorMachineTemplate, MachineClaim, RunnerPool};
use kube_core::CustomResourceExt;

/// After a change of the types, generate twice: the packages are made from the files as they were compiled in.
pub(super) fn files() -> anyhow::Result<[File; 2]> {
    let fleet = [HypervisorCluster::crd(), HypervisorMachineTemplate::crd(), RunnerPool::crd(), MachineClaim::crd()];
    let file = |path: &str, text: String| File { path: path.to_owned(), text: format!("{text}\n") };
    Ok([
        file("crates/catalog/src/profile/crd.json", serde_json::to_string_pretty(&VirtPlatformConfig::crd())?),
        file("crates/install/src/fleet/crds.json", serde_json::to_string_pretty(&fleet)?),
    ])
}

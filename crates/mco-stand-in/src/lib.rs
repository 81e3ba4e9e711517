//! A stand-in of OpenShift's machine-config operator: a state machine without I/O that behaves as the documentation of the real one says.
//!
//! It renders MachineConfigs into the configuration of every pool, turns KubeletConfigs into MachineConfigs, updates the nodes of a
//! pool a few at a time, and reports all of this where the real operator does: in `spec.configuration` and `status` of the pool, in
//! `status` of the KubeletConfig, and in annotations, `spec.unschedulable` and the `Ready` condition of the node.
//!
//! [`StandIn::step`] compares a [`Snapshot`] of the cluster with what should be there and returns the writes that are due. It keeps only
//! what nobody can observe: when a render, a drain or a restart ends, and which configuration was rendered last.
//!
//! # Where it differs from the real operator
//!
//! - There are no machines: drains and restarts are only a time ([`Timing`]), no pod is evicted, and a drain never fails.
//! - A node that is cordoned or away gets no taint.
//! - Nodes are chosen as soon as a change is seen; the real operator chooses them and writes the status together, five seconds later.
//! - `maxUnavailable` of the pool `master` is honoured as for other pools, and the node of the operator itself is not updated last.
//! - A rendered name ends with the first 32 digits of a SHA-256; the real one is an MD5 over another serialisation.
//! - Ignition 3.0 to 3.5 is accepted, and only the parts of a config that MachineConfigs usually have are validated. Ignition 2.2, which the real
//!   operator translates, is refused.
//! - `/etc/kubernetes/kubelet.conf` is written as JSON, from a shorter default.
//! - Every change of `/etc/containers/registries.conf` drains the node; the real operator finds out which ones need not.
//! - The merged node disruption policy is not published in the status of the `MachineConfiguration`.
//! - There are no ContainerRuntimeConfigs, MachineConfigNodes, pinned images, layered images, certificates and events.

mod daemon;
mod disruption;
mod ignition;
mod kubelet;
mod merge;
mod node;
mod patch;
mod pool;
mod render;
mod selector;
mod snapshot;
mod stand_in;
mod status;
mod templates;
#[cfg(test)]
mod tests;
mod timing;

pub use disruption::{Disruption, disruption_between};
pub use node::{annotation, control};
pub use pool::{max_unavailable, nodes_of_pool};
pub use render::{Rendered, render};
pub use snapshot::{Action, Kind, Snapshot, Write};
pub use stand_in::StandIn;
pub use templates::templates;
pub use timing::Timing;

/// The API version of MachineConfigs, KubeletConfigs and pools.
pub const API_VERSION: &str = "machineconfiguration.openshift.io/v1";
/// The label by which a MachineConfig names the role of the nodes that it is for.
pub const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";
/// The annotation of MachineConfigs that the operator generates.
pub const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";
/// What [`GENERATED_BY`] says.
const VERSION: &str = "stand-in";
/// The Ignition version of everything that is rendered.
const IGNITION_VERSION: &str = "3.5.0";

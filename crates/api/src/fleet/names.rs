//! The names under which the fleet writes, and the annotations that people set.

/// The group of all four kinds.
pub const GROUP: &str = "hyperfleet.io";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// The prefix of annotations and labels.
pub const PREFIX: &str = "hyperfleet.io/";
/// The field manager of the fleet.
pub const FIELD_MANAGER: &str = "virtpilot-fleet";
/// The Secret with the authority of the bootstrap endpoint, in the namespace of the fleet.
pub const BOOTSTRAP_SECRET: &str = "virtpilot-fleet-bootstrap";
/// The Lease of its leader.
pub const LEASE: &str = "virtpilot-fleet.hyperfleet.io";
/// On that Lease: the name and the address of the pod that leads, and the ports of its webhooks and of its bootstrap endpoint (0: off).
pub const LEADER_ADDRESS: &str = "hyperfleet.io/leader-address";
/// The label, key and value, of objects that the fleet creates.
pub const MANAGED_BY: (&str, &str) = ("hyperfleet.io/managed-by", "virtpilot-fleet");

/// Keeps a `MachineClaim` until its machine is gone.
pub const CLEANUP_FINALIZER: &str = "hyperfleet.io/vm-cleanup";
/// Keeps a `HypervisorCluster`, a `HypervisorMachineTemplate` or a `RunnerPool` until no claim uses it.
pub const IN_USE_FINALIZER: &str = "hyperfleet.io/in-use";

/// On a claim that is being deleted, with `true`: the claim goes although its machine was not seen to be gone.
pub const FORCE_DELETE: &str = "hyperfleet.io/force-delete";
/// On a `HypervisorCluster`: the changed endpoint, to say that it is the same hypervisor, with its machines.
pub const SAME_HYPERVISOR: &str = "hyperfleet.io/same-hypervisor";
/// On a claim, with `true`: it takes no more work and ends when it is not busy.
pub const DRAIN: &str = "hyperfleet.io/drain";
/// On a claim, with `true`: work runs on it, so it is not drained.
pub const BUSY: &str = "hyperfleet.io/busy";
/// The ConfigMap with the jobs that `virtpilot queue` shows.
pub const QUEUE: &str = "virtpilot-fleet-queue";
/// An annotation of a `RunnerPool`: the runner version that was rolled back and is tried again.
pub const RETRY_RUNNER_VERSION: &str = "hyperfleet.io/retry-runner-version";

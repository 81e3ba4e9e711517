//! The API of the fleet: machines on hypervisors outside of the cluster, as objects of the group `hyperfleet.io/v1alpha1`.

mod claim;
mod cluster;
mod github;
mod gitlab;
mod measure;
mod names;
mod pool;
mod reference;
mod template;
mod versions;

pub use crate::advisor::{Condition, Time, Truth};
pub use claim::{
    BootstrapInfo, ClaimPhase, ClaimPower, FailureClass, GuestFailure, LastFailure, MachineClaim, MachineClaimSpec,
    MachineClaimStatus, NetworkInfo, RunnerRecord, RunnerScope, VmRef,
};
pub use cluster::{
    AvailableResources, Credentials, HypervisorCluster, HypervisorClusterSpec, HypervisorClusterStatus, Limits,
    OrphanPolicy, Orphans, Overcommit, Provider, Tls, VmIds,
};
pub use github::{
    Github, GithubApp, GithubCredentials, JobQuotas, JobSource, RepositoryShare, RunnerArchitecture, RunnerArchive,
    RunnerDownload, RunnerLimits, RunnerProgram, RunnerUpkeep, WorkloadConfig,
};
pub use gitlab::{Gitlab, GitlabCredentials, GitlabRunner, GitlabSource};
pub use measure::{Quantity, Span};
pub use names::{
    BOOTSTRAP_SECRET, BUSY, CLEANUP_FINALIZER, DRAIN, FIELD_MANAGER, FORCE_DELETE, GROUP, IN_USE_FINALIZER,
    LEADER_ADDRESS, LEASE, MANAGED_BY, PREFIX, QUEUE, RETRY_RUNNER_VERSION, SAME_HYPERVISOR, VERSION,
};
pub use pool::{
    Lifecycle, Quota, RunnerPool, RunnerPoolSpec, RunnerPoolStatus, Runners, ScaleSetRecord, Scaling, Schedule, Spares,
    Weekday, Workload,
};
pub use reference::{LocalRef, Ref, SecretKeyRef};
pub use template::{
    Attestation, Bootstrap, CloudInit, HypervisorMachineTemplate, HypervisorMachineTemplateSpec,
    HypervisorMachineTemplateStatus, KubevirtTemplate, Network, NetworkMode, ProxmoxTemplate, Readiness,
    ReadinessSignal, Resources, SeedDelivery, StaticNetwork, TemplateSource,
};
pub use versions::{RolledBackVersion, RunnerCanary, RunnerRelease, RunnerVersions};

#[cfg(test)]
mod tests;

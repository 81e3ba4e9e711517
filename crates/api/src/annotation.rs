//! The annotations that users set, and those that we write.

/// The prefix of all our keys.
pub const PREFIX: &str = "platform.kubevirt.io/";

/// On the HyperConverged: whether the autopilot is on, and for which assets.
pub const AUTOPILOT: &str = "platform.kubevirt.io/autopilot";
/// On the HyperConverged: the objects that the autopilot does not manage.
pub const DISABLED_RESOURCES: &str = "platform.kubevirt.io/disabled-resources";
/// On the HyperConverged: which writes need an approval.
pub const APPROVAL: &str = "platform.kubevirt.io/approval";
/// On the HyperConverged: the approved digests.
pub const APPROVED: &str = "platform.kubevirt.io/approved";
/// On the HyperConverged: who approved which digest, and when. `virtpilot approve` writes it; nothing is decided by it.
pub const APPROVED_BY: &str = "platform.kubevirt.io/approved-by";
/// On the HyperConverged: when nodes may restart.
pub const MAINTENANCE_WINDOW: &str = "platform.kubevirt.io/maintenance-window";
/// On a managed object: a JSON patch on top of the desired state.
pub const PATCH: &str = "platform.kubevirt.io/patch";
/// On a managed object: the fields that belong to the user.
pub const IGNORE_FIELDS: &str = "platform.kubevirt.io/ignore-fields";
/// On a managed object: `unmanaged` stops managing it.
pub const MODE: &str = "platform.kubevirt.io/mode";
/// On a managed object: pauses reconciliation. We write it when another writer keeps changing the object; removing it resumes.
pub const RECONCILE_PAUSED: &str = "platform.kubevirt.io/reconcile-paused";

/// Ours, on a managed object: the rest of its budget of corrections.
pub const BUDGET: &str = "platform.kubevirt.io/budget";
/// Ours, on a managed object: the digest of the last apply, so that after a restart we know what a pool already runs.
pub const APPLIED: &str = "platform.kubevirt.io/applied";
/// Ours, on a managed object: the last valid patch, which stays in force while a newer one is refused.
pub const LAST_GOOD_PATCH: &str = "platform.kubevirt.io/last-good-patch";
/// Ours, on a managed object: the last valid list of ignored fields.
pub const LAST_GOOD_IGNORE_FIELDS: &str = "platform.kubevirt.io/last-good-ignore-fields";
/// Ours, on a managed object: `created` or `adopted`; only created objects are ever deleted.
pub const ORIGIN: &str = "platform.kubevirt.io/origin";
/// Ours, on a managed object: the digest of its asset, so that a change of the asset by another release is recognised.
pub const SOURCE: &str = "platform.kubevirt.io/source";

/// The annotations that users set on a managed object; they are lost when it is deleted.
pub const USERS: [&str; 4] = [PATCH, IGNORE_FIELDS, MODE, RECONCILE_PAUSED];

/// All of ours on a managed object: a handback removes them and leaves those of users.
pub const OURS: [&str; 6] = [BUDGET, APPLIED, LAST_GOOD_PATCH, LAST_GOOD_IGNORE_FIELDS, ORIGIN, SOURCE];

/// On the lease: the pod that leads, its version and the digest of its asset pack, separated by spaces.
pub const LEADER: &str = "platform.kubevirt.io/leader";
/// On the lease: the pod that leads, and when its process started, separated by a space. A report of another process is not current.
pub const LEADER_STARTED: &str = "platform.kubevirt.io/leader-started";

/// On a backup: its object, as `apps/v1 DaemonSet namespace/name`.
pub const BACKUP_OBJECT: &str = "platform.kubevirt.io/backup-object";
/// On a backup: when it was taken.
pub const BACKUP_TAKEN: &str = "platform.kubevirt.io/backup-taken";

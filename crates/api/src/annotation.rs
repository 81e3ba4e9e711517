//! The annotations users steer with, and those we write ourselves.

/// Everything below it is ours to name.
pub const PREFIX: &str = "platform.kubevirt.io/";

/// On the HyperConverged: whether, and what, the autopilot keeps.
pub const AUTOPILOT: &str = "platform.kubevirt.io/autopilot";
/// On the HyperConverged: objects the autopilot leaves alone.
pub const DISABLED_RESOURCES: &str = "platform.kubevirt.io/disabled-resources";
/// On the HyperConverged: which writes need a person's yes.
pub const APPROVAL: &str = "platform.kubevirt.io/approval";
/// On the HyperConverged: the digests a person said yes to.
pub const APPROVED: &str = "platform.kubevirt.io/approved";
/// On a managed object: a JSON patch on top of what we want.
pub const PATCH: &str = "platform.kubevirt.io/patch";
/// On a managed object: fields that are the user's.
pub const IGNORE_FIELDS: &str = "platform.kubevirt.io/ignore-fields";
/// On a managed object: `unmanaged` takes it out of our hands.
pub const MODE: &str = "platform.kubevirt.io/mode";
/// On a managed object: written by us when somebody fights over it, removed by whoever wants it kept again.
pub const RECONCILE_PAUSED: &str = "platform.kubevirt.io/reconcile-paused";

/// Ours, on a managed object: what is left of its budget of corrections.
pub const BUDGET: &str = "platform.kubevirt.io/budget";
/// Ours, on a managed object: the digest of what was last applied, so that a restart knows what a pool already runs.
pub const APPLIED: &str = "platform.kubevirt.io/applied";
/// Ours, on a managed object: the patch that was honoured last, to fall back on when another one cannot be.
pub const LAST_GOOD_PATCH: &str = "platform.kubevirt.io/last-good-patch";
/// Ours, on a managed object: the ignored fields that were honoured last.
pub const LAST_GOOD_IGNORE_FIELDS: &str = "platform.kubevirt.io/last-good-ignore-fields";
/// Ours, on a managed object: `created` or `adopted`, so that only what we made is ever removed by us.
pub const ORIGIN: &str = "platform.kubevirt.io/origin";
/// Ours, on a managed object: the fingerprint of the asset it came from, so that one whose asset is gone is known.
pub const SOURCE: &str = "platform.kubevirt.io/source";

/// What users write on a managed object, and lose with it.
pub const USERS: [&str; 4] = [PATCH, IGNORE_FIELDS, MODE, RECONCILE_PAUSED];

/// All of ours on a managed object: they go when we let go of it, and those of users stay.
pub const OURS: [&str; 6] = [BUDGET, APPLIED, LAST_GOOD_PATCH, LAST_GOOD_IGNORE_FIELDS, ORIGIN, SOURCE];

/// On a backup: the object it is of, as `apps/v1 DaemonSet namespace/name`.
pub const BACKUP_OBJECT: &str = "platform.kubevirt.io/backup-object";

//! Privileges on paths.

use std::collections::{BTreeMap, BTreeSet};

/// Every privilege that the stand-in knows.
pub const ALL_PRIVILEGES: [&str; 30] = [
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Pool.Allocate",
    "Pool.Audit",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.Audit",
    "Sys.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.GuestAgent.Audit",
    "VM.GuestAgent.FileWrite",
    "VM.GuestAgent.Unrestricted",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Snapshot",
];

/// What a fleet needs on its VMs, on the path of its pool or on `/vms`.
pub const FLEET_PRIVILEGES: [&str; 13] = [
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.GuestAgent.Audit",
    "VM.GuestAgent.FileWrite",
    "VM.PowerMgmt",
];

/// Privileges by path and by subject, which is a user or a token. They hold for everything below the path, unless the subject has other
/// ones there, which replace them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Acl(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Acl {
    /// Adds privileges.
    pub(crate) fn grant(&mut self, subject: &str, path: &str, privileges: &[&str]) {
        let entry = self.0.entry(path.to_owned()).or_default().entry(subject.to_owned()).or_default();
        entry.extend(privileges.iter().map(|&privilege| privilege.to_owned()));
    }

    /// Takes a privilege away, wherever the subject has it.
    pub(crate) fn revoke(&mut self, subject: &str, privilege: &str) {
        for subjects in self.0.values_mut() {
            if let Some(privileges) = subjects.get_mut(subject) {
                privileges.remove(privilege);
            }
        }
    }

    /// Forgets a path, as the removal of a VM does.
    pub(crate) fn forget(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// Whether a subject has a privilege on a path.
    pub(crate) fn allows(&self, subject: &str, path: &str, privilege: &str) -> bool {
        let of = |parent: &str| self.0.get(parent).and_then(|subjects| subjects.get(subject));
        parents(path).rev().find_map(of).is_some_and(|privileges| privileges.contains(privilege))
    }

    /// All paths that have an entry.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The path itself and everything above it, from the root.
fn parents(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    let itself = Some(path).filter(|path| path.len() > 1);
    ["/"].into_iter().chain(ends.map(|at| &path[..at])).chain(itself)
}

#[cfg(test)]
mod tests {
    use super::Acl;

    #[test]
    fn privileges_hold_below_their_path_until_others_replace_them() {
        let mut acl = Acl::default();
        acl.grant("a@pve", "/vms", &["VM.Audit", "VM.Clone"]);
        acl.grant("a@pve", "/vms/100", &["VM.Audit"]);
        let on = |path: &str| {
            let has = |privilege: &&str| acl.allows("a@pve", path, privilege);
            ["VM.Audit", "VM.Clone"].into_iter().filter(has).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(on("/vms"), "VM.Audit VM.Clone");
        assert_eq!(on("/vms/101"), "VM.Audit VM.Clone");
        assert_eq!(on("/vms/100"), "VM.Audit");
        assert_eq!((on("/"), on("/vmsx")), (String::new(), String::new()));
        assert!(!acl.allows("b@pve", "/vms", "VM.Audit"));
    }
}

//! Which privileges the fleet needs on which paths of Proxmox VE, and which of them are missing.

use crate::proxmox::used::Used;
use crate::settings::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// What `access/permissions` answers: for each path the privileges, and whether they hold below it, too.
pub(crate) type Granted = BTreeMap<String, BTreeMap<String, bool>>;

/// On machines. Since version 9 the guest agent has a privilege of its own.
const ON_MACHINES: [&str; 10] = [
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Disk",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.PowerMgmt",
];

/// Privileges that are missing, as `PRIVILEGE on PATH`.
pub(crate) fn missing(granted: &Granted, scope: &Scope, used: &Used, major: u32) -> Vec<String> {
    let mut missing = BTreeSet::new();
    let mut need = |paths: &[String], privilege: &str| {
        if !paths.iter().any(|path| holds(granted, path, privilege)) {
            missing.insert(format!("{privilege} on {}", paths.join(" or ")));
        }
    };
    // The privileges on a pool are those on its machines, and templates can be in the pool, too.
    let pools = scope.pools.iter().map(|pool| vec![format!("/pool/{pool}"), "/vms".to_owned()]);
    let machines = if scope.pools.is_empty() { vec![vec!["/vms".to_owned()]] } else { pools.collect() };
    let agent = if major >= 9 { "VM.GuestAgent.Audit" } else { "VM.Monitor" };
    for paths in &machines {
        for privilege in ON_MACHINES.into_iter().chain([agent]) {
            need(paths, privilege);
        }
        if scope.runs_in_guests && major >= 9 {
            need(paths, "VM.GuestAgent.Unrestricted");
        }
    }
    for paths in &used.templates {
        need(paths, "VM.Audit");
        need(paths, "VM.Clone");
    }
    for pool in &scope.pools {
        need(&[format!("/pool/{pool}")], "Pool.Audit");
        need(&[format!("/pool/{pool}")], "VM.Allocate");
    }
    for storage in &used.storages {
        need(&[format!("/storage/{storage}")], "Datastore.AllocateSpace");
        need(&[format!("/storage/{storage}")], "Datastore.Audit");
    }
    for storage in &scope.seed_storages {
        // To delete an image takes more than to upload it.
        need(&[format!("/storage/{storage}")], "Datastore.Allocate");
        need(&[format!("/storage/{storage}")], "Datastore.AllocateTemplate");
        need(&[format!("/storage/{storage}")], "Datastore.Audit");
    }
    for network in &used.networks {
        need(&[used.path(network)], "SDN.Use");
    }
    let all_nodes = [String::new()];
    let nodes: Vec<String> = match scope.nodes.is_empty() {
        true => all_nodes.to_vec(),
        false => scope.nodes.iter().map(|node| format!("/{node}")).collect(),
    };
    for node in nodes {
        need(&[format!("/nodes{node}")], "Sys.Audit");
    }
    // The state of the cluster, which says whether it has a quorum.
    need(&["/".to_owned()], "Sys.Audit");
    missing.into_iter().collect()
}

/// Whether a privilege holds on a path: the nearest path that has an entry decides.
pub(crate) fn holds(granted: &Granted, path: &str, privilege: &str) -> bool {
    if let Some(entry) = granted.get(path) {
        return entry.contains_key(privilege);
    }
    let mut above = path;
    while !above.is_empty() {
        above = above.rsplit_once('/').map_or("", |(above, _)| above);
        if let Some(entry) = granted.get(if above.is_empty() { "/" } else { above }) {
            return entry.get(privilege).is_some_and(|propagates| *propagates);
        }
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Granted, ON_MACHINES, holds};
    use crate::proxmox::used::Used;
    use crate::settings::Scope;
    use fleet::hypervisor::Network;

    fn granted(entries: &[(&str, &[(&str, bool)])]) -> Granted {
        let entry = |(path, privileges): &(&str, &[(&str, bool)])| {
            (path.to_string(), privileges.iter().map(|(privilege, below)| (privilege.to_string(), *below)).collect())
        };
        entries.iter().map(entry).collect()
    }

    /// What one `pveum acl modify` of the documentation grants.
    #[derive(Debug)]
    pub(crate) struct Grant {
        pub(crate) path: String,
        pub(crate) privileges: Vec<String>,
        pub(crate) propagates: bool,
    }

    /// What the commands of `docs/fleet.md` grant.
    pub(crate) fn documented() -> Vec<Grant> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet.md");
        let text = std::fs::read_to_string(file).unwrap();
        let mut roles = std::collections::BTreeMap::new();
        let mut grants = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(role) = line.strip_prefix("pveum role add ") {
                let (name, privileges) = role.split_once(" --privs ").unwrap();
                let privileges: Vec<String> =
                    privileges.trim_matches('"').split_whitespace().map(str::to_owned).collect();
                roles.insert(name, privileges);
            }
            if let Some(grant) = line.strip_prefix("pveum acl modify ") {
                let (path, options) = grant.split_once(' ').unwrap();
                let role = options.split_once("--roles ").unwrap().1.split_whitespace().next().unwrap();
                let propagates = !options.contains("--propagate 0");
                grants.push(Grant { path: path.to_owned(), privileges: roles[role].clone(), propagates });
            }
        }
        assert!(grants.len() >= 5, "{grants:?}");
        grants
    }

    fn scope() -> Scope {
        let one = |name: &str| [name.to_owned()].into();
        Scope {
            nodes: one("pve1"),
            storages: one("fast"),
            seed_storages: one("local"),
            networks: [Network { bridge: "vmbr0".into(), vlan: None }].into(),
            pools: one("ci"),
            ..Scope::default()
        }
    }

    /// The missing privileges of somebody who uses nothing but what a scope names.
    fn missing(granted: &Granted, scope: &Scope, major: u32) -> Vec<String> {
        super::missing(granted, scope, &used(scope), major)
    }

    fn used(scope: &Scope) -> Used {
        Used { storages: scope.storages.clone(), networks: scope.networks.clone(), ..Used::default() }
    }

    #[test]
    fn the_nearest_path_decides_and_a_privilege_may_not_hold_below() {
        let granted = granted(&[("/", &[("A", true), ("B", false)]), ("/vms", &[("C", true)]), ("/vms/9", &[])]);
        assert!(holds(&granted, "/storage/x", "A") && holds(&granted, "/", "B") && holds(&granted, "/vms/100", "C"));
        assert!(!holds(&granted, "/storage/x", "B"), "it does not hold below");
        assert!(!holds(&granted, "/vms/100", "A"), "an entry that is nearer replaces it");
        assert!(!holds(&granted, "/vms/9", "C") && !holds(&Granted::new(), "/vms", "C"));
    }

    #[test]
    fn every_missing_privilege_is_named_with_its_path() {
        let machine: Vec<(&str, bool)> =
            ON_MACHINES.into_iter().chain(["VM.GuestAgent.Audit", "Pool.Audit"]).map(|p| (p, true)).collect();
        let all: Vec<(&str, &[(&str, bool)])> = vec![
            ("/pool/ci", &machine),
            ("/storage/fast", &[("Datastore.AllocateSpace", true), ("Datastore.Audit", true)]),
            (
                "/storage/local",
                &[("Datastore.Allocate", true), ("Datastore.AllocateTemplate", true), ("Datastore.Audit", true)],
            ),
            ("/sdn/zones/localnetwork", &[("SDN.Use", true)]),
            ("/nodes", &[("Sys.Audit", true)]),
            ("/", &[("Sys.Audit", false)]),
        ];
        assert_eq!(missing(&granted(&all), &scope(), 9), Vec::<String>::new());
        assert_eq!(missing(&granted(&all), &scope(), 8), ["VM.Monitor on /pool/ci or /vms"]);
        for left_out in 1..all.len() {
            let mut some = all.clone();
            let (path, privileges) = some.remove(left_out);
            let found = missing(&granted(&some), &scope(), 9);
            assert_eq!(found.len(), privileges.len(), "{path}: {found:?}");
            assert!(found.iter().all(|missing| missing.contains(path)), "{path}: {found:?}");
        }
        let runs = Scope { runs_in_guests: true, ..scope() };
        assert_eq!(missing(&granted(&all), &runs, 9), ["VM.GuestAgent.Unrestricted on /pool/ci or /vms"]);
        assert_eq!(missing(&granted(&all), &runs, 8), ["VM.Monitor on /pool/ci or /vms"], "it suffices for both");
        assert_eq!(missing(&Granted::new(), &scope(), 9).len(), 21);
        assert!(missing(&Granted::new(), &Scope::default(), 9).contains(&"VM.Clone on /vms".to_owned()));
    }

    /// The commands of `docs/fleet.md` grant what is needed, and nothing of it can be left out.
    #[test]
    fn the_documented_commands_grant_what_is_needed_and_each_is_needed() {
        let all = documented();
        let one = |name: &str| [name.to_owned()].into();
        let scope =
            Scope { storages: one("local-lvm"), seed_storages: one("fleet-seeds"), pools: one("virtpilot"), ..scope() };
        let granted = |left_out: &str| -> Granted {
            let entry = |grant: &Grant| {
                let privileges = grant.privileges.iter().map(|name| (name.clone(), grant.propagates)).collect();
                (grant.path.clone(), privileges)
            };
            all.iter().filter(|grant| grant.path != left_out).map(entry).collect()
        };
        let used = Used { templates: [vec!["/vms/9000".to_owned()]].into(), ..used(&scope) };
        let missing = |granted: &Granted| super::missing(granted, &scope, &used, 9);
        assert_eq!(missing(&granted("none")), Vec::<String>::new());
        for Grant { path, .. } in &all {
            assert_ne!(missing(&granted(path)), Vec::<String>::new(), "{path} is granted for nothing");
        }
    }
}

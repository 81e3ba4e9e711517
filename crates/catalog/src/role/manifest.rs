//! The YAML of a role.

use super::{Granted, LookedUp};
use api::{LEASE, STATE, STATUS};
use change::Key;
use std::collections::{BTreeMap, BTreeSet};

/// What the operator reads besides its managed objects: (group, resources, verbs).
const READS: [(&str, &str, &str); 9] = [
    ("", "nodes", "list, watch"),
    ("config.openshift.io", "clusterversions, infrastructures, schedulers", "list, watch"),
    ("machineconfiguration.openshift.io", "machineconfigpools", "get, list, watch"),
    // The rendered ones, whose names nobody knows in advance.
    ("machineconfiguration.openshift.io", "machineconfigs", "get"),
    ("operator.openshift.io", "machineconfigurations", "list, watch"),
    ("hco.kubevirt.io", "hyperconvergeds", "get, list, watch"),
    // What the advisor governs is left to it.
    ("advisor.kubevirt.io", "virtplatformconfigs", "list, watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get, list, watch"),
    // A patch counts an event that was published before.
    ("events.k8s.io", "events", "create, patch"),
];

/// The manifests.
pub(super) fn text(objects: &[Granted], reads: &BTreeSet<LookedUp>, namespace: &str) -> String {
    // By kind, then by verbs.
    let mut kinds: BTreeMap<(String, String), BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for granted in objects {
        let Key { kind, name, .. } = &granted.key;
        let of_kind = kinds.entry((kind.group.clone(), plural(&kind.kind))).or_default();
        of_kind.entry(granted.verbs()).or_default().insert(name.clone());
    }
    let name = api::FIELD_MANAGER;
    let mut text = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         # The operator's pod mounts its token; a pod that does not ask gets none.\nautomountServiceAccountToken: false\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n"
    );
    for ((group, verbs), resources) in &unnamed(kinds.keys(), reads) {
        let resources = resources.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("  - apiGroups: [\"{group}\"]\n    resources: [{resources}]\n    verbs: [{verbs}]\n"));
    }
    for ((group, resource), by_verbs) in &kinds {
        for (verbs, names) in by_verbs {
            let names = names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            text.push_str(&format!(
                "  - apiGroups: [\"{group}\"]\n    resources: [{resource}]\n    resourceNames: [{names}]\n    verbs: [{verbs}]\n"
            ));
        }
    }
    text.push_str(&format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\nroleRef:\n  \
         apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {name}\nsubjects:\n  - kind: ServiceAccount\n    \
         name: {name}\n    namespace: {namespace}\n"
    ));
    let subject = format!("subjects:\n  - kind: ServiceAccount\n    name: {name}\n    namespace: {namespace}\n");
    let backups = objects.iter().flat_map(|granted| &granted.backups);
    let backups = backups.map(|name| format!("      - \"{name}\"\n")).collect::<String>();
    // The lease is created with POST, which RBAC cannot restrict by name, so that is granted for all names. ConfigMaps are created with
    // an apply, which it can.
    text.push_str(&format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {name}\n  namespace: {namespace}\nrules:\n  \
         - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    verbs: [create]\n  \
         - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    resourceNames: [\"{LEASE}\"]\n    verbs: [get, update]\n  \
         # The pod of the leader: a standby replica follows at once when it has ended.\n  \
         - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get, watch]\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [\"{STATE}\"]\n    verbs: [create, get, patch]\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [\"{STATUS}\"]\n    verbs: [create, patch]\n  \
         # Backups: three for each object that can be adopted.\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames:\n{backups}    verbs: [create, get, patch]\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: {name}\n{subject}"
    ));
    text
}

/// The resources that the operator reads whatever their names are, by group and verbs.
fn unnamed<'a>(
    managed: impl Iterator<Item = &'a (String, String)>,
    reads: &BTreeSet<LookedUp>,
) -> BTreeMap<(String, String), BTreeSet<String>> {
    let fixed = READS.iter().flat_map(|(group, resources, verbs)| {
        resources.split(", ").map(move |resource| ((*group).to_owned(), resource.to_owned(), *verbs))
    });
    let looked_up = reads.iter().map(|LookedUp { kind, by_name }| {
        (kind.group.clone(), plural(&kind.kind), if *by_name { "get, list, watch" } else { "list, watch" })
    });
    let managed = managed.map(|(group, resource)| (group.clone(), resource.clone(), "list, watch"));
    let mut verbs_of: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for (group, resource, verbs) in fixed.chain(looked_up).chain(managed) {
        verbs_of.entry((group, resource)).or_default().extend(verbs.split(", "));
    }
    let mut rules: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs_of {
        let verbs = verbs.into_iter().collect::<Vec<_>>().join(", ");
        rules.entry((group, verbs)).or_default().insert(resource);
    }
    rules
}

/// The plural resource name of a kind, as its CRD spells it; some kinds are plural already.
pub(super) fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.strip_suffix('y') {
        _ if lower.ends_with("constraints") || lower == "endpoints" => lower,
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if lower.ends_with(['s', 'x']) => format!("{lower}es"),
        _ => format!("{lower}s"),
    }
}

//! The YAML of the roles.

use super::{ADVISOR, ADVISOR_LEASE, Granted, LookedUp};
use api::{LEASE, STATE, STATUS};
use change::Key;
use std::collections::{BTreeMap, BTreeSet};

/// What both products read besides the objects that they write: (group, resources, verbs).
const READS: [(&str, &str, &str); 9] = [
    ("", "nodes", "list, watch"),
    ("config.openshift.io", "clusterversions, infrastructures, schedulers", "list, watch"),
    ("machineconfiguration.openshift.io", "machineconfigpools", "get, list, watch"),
    // The rendered ones, whose names nobody knows in advance.
    ("machineconfiguration.openshift.io", "machineconfigs", "get"),
    ("operator.openshift.io", "machineconfigurations", "list, watch"),
    ("hco.kubevirt.io", "hyperconvergeds", "get, list, watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get, list, watch"),
    // What the advisor governs, the autopilot leaves alone.
    ("advisor.kubevirt.io", "virtplatformconfigs", "list, watch"),
    // A patch counts an event that was published before.
    ("events.k8s.io", "events", "create, patch"),
];

/// What the advisor writes of its own: the profiles that it advertises, and what it shows of each.
const OWN_OF_ADVISOR: &str = "  - apiGroups: [\"advisor.kubevirt.io\"]\n    resources: [virtplatformconfigs]\n    verbs: [create]\n  \
    - apiGroups: [\"advisor.kubevirt.io\"]\n    resources: [virtplatformconfigs/status]\n    verbs: [patch]\n";

/// The manifests of the autopilot.
pub(super) fn text(objects: &[Granted], reads: &BTreeSet<LookedUp>, namespace: &str) -> String {
    let name = api::FIELD_MANAGER;
    let backups = objects.iter().flat_map(|granted| &granted.backups);
    let backups = backups.map(|name| format!("      - \"{name}\"\n")).collect::<String>();
    // ConfigMaps are created with an apply, which RBAC can restrict by name.
    let own = format!(
        "  - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [\"{STATE}\"]\n    verbs: [create, get, patch]\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [\"{STATUS}\"]\n    verbs: [create, patch]\n  \
         # Backups: three for each object that can be adopted.\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames:\n{backups}    verbs: [create, get, patch]\n"
    );
    let rules = cluster_rules(objects, reads);
    account(name, namespace) + &roles(name, &Account { name, namespace }, &rules, LEASE, &own)
}

/// The manifests of the advisor, for an account that may be the autopilot's.
pub(super) fn text_of_advisor(
    objects: &[Granted],
    reads: &BTreeSet<LookedUp>,
    namespace: &str,
    account_name: &str,
) -> String {
    let rules = cluster_rules(objects, reads) + OWN_OF_ADVISOR;
    let own = format!(
        "  - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [\"{}\"]\n    verbs: [create, get, patch]\n",
        api::advisor::STATE
    );
    let roles = roles(ADVISOR, &Account { name: account_name, namespace }, &rules, ADVISOR_LEASE, &own);
    if account_name == ADVISOR { account(ADVISOR, namespace) + &roles } else { roles }
}

/// A service account.
struct Account<'a> {
    name: &'a str,
    namespace: &'a str,
}

fn account(name: &str, namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         # The operator's pod mounts its token; a pod that does not ask gets none.\nautomountServiceAccountToken: false\n---\n"
    )
}

/// The rules for the whole cluster: what is read whatever its name is, and what is written by name.
fn cluster_rules(objects: &[Granted], reads: &BTreeSet<LookedUp>) -> String {
    // By kind, then by verbs.
    let mut kinds: BTreeMap<(String, String), BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for granted in objects {
        let Key { kind, name, .. } = &granted.key;
        let of_kind = kinds.entry((kind.group.clone(), plural(&kind.kind))).or_default();
        of_kind.entry(granted.verbs()).or_default().insert(name.clone());
    }
    let mut text = String::new();
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
    text
}

/// Both roles of a product and their bindings; `own` are further rules for its namespace.
fn roles(name: &str, account: &Account<'_>, rules: &str, lease: &str, own: &str) -> String {
    let Account { name: account, namespace } = account;
    let subject = format!("subjects:\n  - kind: ServiceAccount\n    name: {account}\n    namespace: {namespace}\n");
    // The lease is created with POST, which RBAC cannot restrict by name, so that is granted for all names.
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n{rules}\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\nroleRef:\n  \
         apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {name}\n{subject}\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {name}\n  namespace: {namespace}\nrules:\n  \
         - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    verbs: [create]\n  \
         - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    resourceNames: [\"{lease}\"]\n    verbs: [get, update]\n  \
         # The pod of the leader: a standby replica follows at once when it has ended.\n  \
         - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get, watch]\n{own}\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: {name}\n{subject}"
    )
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

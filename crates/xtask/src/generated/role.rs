//! The operator's RBAC role, derived from the assets: `deploy/rbac/role.yaml`, and the roles of other packs.

use super::File;
use crate::pack;
use crate::workspace::Workspace;
use anyhow::{Context, bail};
use api::{LEASE, STATE};
use catalog::{Answer, Asset, Catalog, Condition, Facts, Hardware, Prune, Query, Rendered};
use change::{Key, Kind, backup};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the operator reads besides its managed objects: (group, resources, verbs).
const READS: [(&str, &str, &str); 6] = [
    ("", "nodes", "list, watch"),
    ("config.openshift.io", "clusterversions, infrastructures, schedulers", "list, watch"),
    ("machineconfiguration.openshift.io", "machineconfigpools", "list, watch"),
    ("hco.kubevirt.io", "hyperconvergeds", "get, list, watch"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get, list, watch"),
    ("events.k8s.io", "events", "create"),
];

/// The limit of rendering rounds for templates that keep needing more queries.
const ROUNDS: usize = 8;

/// The asset packs of this repository and the files of their roles.
const PACKS: [(&str, &str); 6] = [
    ("assets/", "deploy/rbac/role.yaml"),
    ("crates/operator/tests/packs/adopted/", "crates/operator/tests/packs/adopted.role.yaml"),
    ("crates/operator/tests/packs/facts/", "crates/operator/tests/packs/facts.role.yaml"),
    ("crates/operator/tests/packs/kinds/", "crates/operator/tests/packs/kinds.role.yaml"),
    ("crates/operator/tests/packs/life/", "crates/operator/tests/packs/life.role.yaml"),
    ("crates/operator/tests/packs/scene/", "crates/operator/tests/packs/scene.role.yaml"),
];

pub(super) fn files(workspace: &Workspace) -> anyhow::Result<Vec<File>> {
    PACKS.iter().map(|(folder, role)| file(workspace, folder, role)).collect()
}

fn file(workspace: &Workspace, folder: &str, role: &str) -> anyhow::Result<File> {
    let mut files = BTreeMap::new();
    for path in workspace.files.iter().filter_map(|path| path.strip_prefix(folder)) {
        files.insert(path.to_owned(), std::fs::read(workspace.root.join(folder).join(path))?);
    }
    Ok(File { path: role.to_owned(), text: of(&pack::load(files)?)? })
}

/// An object that the role covers.
struct Granted {
    key: Key,
    /// Whether it is a tombstone: it is no longer created.
    is_tombstone: bool,
    /// Whether it may be deleted.
    may_delete: bool,
}

/// The service account, roles and bindings that an operator needs to manage the objects of this catalogue, and no more.
pub(crate) fn of(catalog: &Catalog) -> anyhow::Result<String> {
    let (mut objects, mut reads) = (Vec::new(), BTreeSet::new());
    for asset in &catalog.assets {
        let key = object(catalog, asset, &mut reads)?;
        if !backup::has_safe_place(&key.kind) {
            bail!(
                "asset {} is a Secret, which no role grants: whoever may write a Secret can make a token of any account in its \
                 namespace",
                asset.name
            );
        }
        objects.push(Granted { may_delete: asset.prune != Prune::Never, is_tombstone: false, key });
    }
    for tombstone in &catalog.tombstones {
        let kind = Kind::new(&tombstone.api_version, &tombstone.kind);
        let namespace = tombstone.namespace.clone().unwrap_or_default();
        let key = Key { kind, namespace, name: tombstone.name.clone() };
        objects.push(Granted { key, is_tombstone: true, may_delete: true });
    }
    Ok(text(&objects, &reads))
}

impl Granted {
    fn verbs(&self) -> &'static str {
        let may_delete = self.may_delete && !api::NEVER_REMOVED.contains(&self.key.kind.kind.as_str());
        match (self.is_tombstone, may_delete) {
            (false, true) => "create, get, patch, delete",
            (false, false) => "create, get, patch",
            (true, true) => "get, patch, delete",
            (true, false) => "get, patch",
        }
    }
}

/// The key of an asset's object, rendered for a cluster in which all conditions of the asset hold. Also collects the kinds that
/// the template queries. A name that depends on anything else cannot be granted by name.
fn object(catalog: &Catalog, asset: &Asset, reads: &mut BTreeSet<Kind>) -> anyhow::Result<Key> {
    let mut facts = assume(asset);
    reads.extend(asset.reads.iter().flatten().map(|read| Kind::new(&read.api_version, &read.kind)));
    if asset.conditions.iter().any(|condition| matches!(condition, Condition::KubevirtFeatureGate { .. })) {
        reads.insert(Kind::new("kubevirt.io/v1", "KubeVirt"));
    }
    for _ in 0..ROUNDS {
        match catalog::render(catalog, asset, &facts) {
            Rendered::Object(object) => {
                return Key::of(&object).with_context(|| format!("asset {} has no name", asset.name));
            }
            Rendered::Needs(queries) => {
                for query in queries {
                    if let Query::Object { api_version, kind, .. } | Query::List { api_version, kind } = &query {
                        reads.insert(Kind::new(api_version, kind));
                    }
                    facts.answers.insert(query, Answer::Absent);
                }
            }
            Rendered::Broken(why) => bail!("asset {} cannot be rendered: {why}", asset.name),
            Rendered::Empty | Rendered::Held(_) => break,
        }
    }
    catalog.plain_key(asset).with_context(|| {
        format!(
            "the object of asset {} is unknown: it renders to nothing although all its conditions hold, and {} does not contain \
             apiVersion, kind and metadata.name literally",
            asset.name, asset.path
        )
    })
}

/// The facts of a cluster in which all conditions of an asset hold.
fn assume(asset: &Asset) -> Facts {
    let (mut annotations, mut gates, mut facts) = (Map::new(), Vec::new(), Facts::default());
    let (pci_devices_present, numa_nodes_present, vfio_capable) = (true, true, true);
    let (usb_devices_present, gpu_present) = (true, true);
    facts.hardware =
        Hardware { pci_devices_present, numa_nodes_present, vfio_capable, usb_devices_present, gpu_present };
    for condition in &asset.conditions {
        match condition {
            Condition::Annotation { key, value } => {
                annotations.insert(key.clone(), json!(value.as_deref().unwrap_or("true")));
            }
            Condition::FeatureGate { value } => gates.push(json!({"name": value, "state": "Enabled"})),
            Condition::Image { key } => {
                facts.images.insert(key.clone(), "image".into());
            }
            Condition::HardwareDetection { .. }
            | Condition::HcoFieldUnconfigured { .. }
            | Condition::Topology { .. }
            | Condition::KubevirtFeatureGate { .. } => {}
        }
    }
    let metadata =
        json!({"name": api::hco::NAME, "namespace": api::hco::NAMESPACE, "annotations": annotations, "labels": {}});
    let api_version = format!("{}/{}", api::hco::GROUP, api::hco::VERSIONS[0]);
    let spec = if gates.is_empty() { json!({}) } else { json!({"featureGates": gates}) };
    facts.hco = json!({"apiVersion": api_version, "kind": api::hco::KIND, "metadata": metadata, "spec": spec});
    facts
}

fn text(objects: &[Granted], reads: &BTreeSet<Kind>) -> String {
    // By kind, then by verbs.
    let mut kinds: BTreeMap<(String, String), BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for granted in objects {
        let Key { kind, name, .. } = &granted.key;
        let of_kind = kinds.entry((kind.group.clone(), plural(&kind.kind))).or_default();
        of_kind.entry(granted.verbs()).or_default().insert(name.clone());
    }
    let (name, namespace) = (api::FIELD_MANAGER, api::hco::NAMESPACE);
    let mut text = format!(
        "# Generated by `cargo xtask` from the catalogue. Writes are by name; no wildcard, no escalate, no bind.\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {namespace}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n"
    );
    for (group, resources, verbs) in READS {
        text.push_str(&format!("  - apiGroups: [\"{group}\"]\n    resources: [{resources}]\n    verbs: [{verbs}]\n"));
    }
    for kind in reads {
        text.push_str(&format!(
            "  - apiGroups: [\"{}\"]\n    resources: [{}]\n    verbs: [get, list, watch]\n",
            kind.group,
            plural(&kind.kind)
        ));
    }
    for ((group, resource), by_verbs) in &kinds {
        text.push_str(&format!(
            "  - apiGroups: [\"{group}\"]\n    resources: [{resource}]\n    verbs: [list, watch]\n"
        ));
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
    let adoptable = objects.iter().filter(|granted| !granted.is_tombstone);
    let backups = adoptable.flat_map(|granted| backup::names(&granted.key));
    let backups = backups.map(|name| format!("      - \"{name}\"\n")).collect::<String>();
    // The lease is created with POST, which RBAC cannot restrict by name, so that is granted for all names. ConfigMaps are created with
    // an apply, which it can.
    text.push_str(&format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {name}\n  namespace: {namespace}\nrules:\n  \
         - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    verbs: [create]\n  \
         - apiGroups: [\"coordination.k8s.io\"]\n    resources: [leases]\n    resourceNames: [\"{LEASE}\"]\n    verbs: [get, update]\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [\"{STATE}\"]\n    verbs: [create, get, patch]\n  \
         # Backups: three for each object that can be adopted.\n  \
         - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames:\n{backups}    verbs: [create, get, patch]\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: {name}\n{subject}"
    ));
    text
}

/// The plural resource name of a kind, as its CRD spells it; some kinds are plural already.
fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.strip_suffix('y') {
        _ if lower.ends_with("constraints") || lower == "endpoints" => lower,
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if lower.ends_with(['s', 'x']) => format!("{lower}es"),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Granted, of, plural, text};
    use crate::pack;
    use change::{Key, Kind};
    use std::collections::{BTreeMap, BTreeSet};

    fn role(template: &str, conditions: &str) -> anyhow::Result<String> {
        let asset = format!("{{name: a, path: active/a.yaml.tpl, install: opt-in, conditions: [{conditions}]}}");
        let catalogue = format!("assets: [{asset}]\nfeatures: [{{name: f, description: d, assets: [a]}}]\n");
        let files = [("active/metadata.yaml", catalogue.as_str()), ("active/a.yaml.tpl", template)];
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        of(&pack::load(files)?)
    }

    #[test]
    fn the_name_of_an_object_is_rendered_or_read_literally() {
        let image = "{type: image, key: i}";
        let by_condition = "apiVersion: v1\nkind: Service\nmetadata: {name: {{ index .Images \"i\" }}-x}\n";
        assert!(role(by_condition, image).unwrap().contains("[\"image-x\"]"));
        let querying = "{{ if objectExists \"Prometheus\" \"n\" \"p\" }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: plain\n{{ end }}\n";
        let literal = role(querying, image).unwrap();
        assert!(literal.contains("[\"plain\"]") && literal.contains("resources: [prometheuses]"), "{literal}");
        let gate = "{type: kubevirt-feature-gate, value: G}";
        assert!(
            role(by_condition.replace("index .Images \"i\"", "\"x\"").as_str(), gate)
                .unwrap()
                .contains("resources: [kubevirts]")
        );
        let unclear = "{{ if objectExists \"Prometheus\" \"n\" \"p\" }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .HCO.GetName }}\n{{ end }}\n";
        let error = role(unclear, image).unwrap_err().to_string();
        assert!(error.contains("the object of asset a is unknown"), "{error}");
    }

    fn granted(kind: &str, name: &str, is_tombstone: bool, may_delete: bool) -> Granted {
        let key = Key { kind: Kind::new("v1", kind), namespace: "n".into(), name: name.into() };
        Granted { key, is_tombstone, may_delete }
    }

    #[test]
    fn the_role_grants_writes_by_name_and_nothing_that_escalates() {
        let objects = [
            granted("Service", "metrics", false, true),
            granted("Service", "kept", false, false),
            granted("Service", "former", true, true),
            granted("Namespace", "home", false, true),
        ];
        let text = text(&objects, &BTreeSet::from([Kind::new("v1", "ConfigMap")]));
        assert!(text.contains("    resources: [configmaps]\n    verbs: [get, list, watch]\n"), "{text}");
        for (resource, name, verbs) in [
            ("services", "metrics", "create, get, patch, delete"),
            ("services", "kept", "create, get, patch"),
            ("services", "former", "get, patch, delete"),
            ("namespaces", "home", "create, get, patch"),
        ] {
            let rule = format!("    resources: [{resource}]\n    resourceNames: [\"{name}\"]\n    verbs: [{verbs}]\n");
            assert!(text.contains(&rule), "{rule} is not in\n{text}");
        }
        for forbidden in ["\"*\"", "bind]", "escalate]", "impersonate"] {
            assert!(!text.contains(forbidden), "{forbidden}");
        }
        // Whoever may write a Secret can make a token of any account in its namespace.
        assert!(!text.to_lowercase().contains("secret"), "{text}");
        let error = role("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", "").unwrap_err().to_string();
        assert!(error.contains("asset a is a Secret"), "{error}");
        // Backups are granted by name, for objects that can be adopted.
        let (cluster_wide, namespaced) = text.split_once("\nkind: Role\n").unwrap();
        let names = |name: &str| change::backup::names(&granted("Service", name, false, true).key);
        assert!(names("metrics").iter().all(|name| namespaced.contains(name) && !cluster_wide.contains(name)));
        assert!(names("former").iter().all(|name| !text.contains(name)), "a tombstone is never adopted");
        assert_eq!(
            (plural("NodeFeatureDiscovery").as_str(), plural("Ingress").as_str()),
            ("nodefeaturediscoveries", "ingresses")
        );
        assert_eq!(plural("SecurityContextConstraints"), "securitycontextconstraints");
    }
}

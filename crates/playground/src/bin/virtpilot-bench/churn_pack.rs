//! An asset pack of kinds that no playground serves, and one object that requires a GPU.

use playground::{UserError, files, user_error};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The group of all its kinds.
pub(crate) const GROUP: &str = "bench.example";
/// The number of kinds.
pub(crate) const KINDS: usize = 50;
/// The ConfigMap that is desired only if a node has a GPU.
pub(crate) const GPU: &str = "bench-gpu";

/// Writes the pack into a folder.
pub(crate) fn write(folder: &Path) -> Result<PathBuf, UserError> {
    let pack = folder.join("changing-pack");
    let active = pack.join("active");
    std::fs::create_dir_all(&active).map_err(|error| user_error::io("create", &active, error))?;
    let save = |name: &str, text: &str| files::write(&active.join(name), text);
    let (mut assets, mut names) = ("assets:\n".to_owned(), Vec::new());
    for number in 0..KINDS {
        let name = name(number);
        let _ = writeln!(assets, "- {{name: {name}, path: active/{name}.yaml, install: always}}");
        save(
            &format!("{name}.yaml"),
            &format!("apiVersion: {GROUP}/v1\nkind: Thing{number}\nmetadata:\n  name: {name}\nspec:\n  mode: good\n"),
        )?;
        names.push(name);
    }
    let gpu = "conditions: [{type: hardware-detection, detector: gpuPresent}]";
    let _ = writeln!(assets, "- {{name: {GPU}, path: active/{GPU}.yaml, install: always, {gpu}}}");
    let namespace = api::hco::NAMESPACE;
    save(
        &format!("{GPU}.yaml"),
        &format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {GPU}\n  namespace: {namespace}\ndata:\n  mode: good\n"
        ),
    )?;
    names.push(GPU.to_owned());
    let _ = writeln!(assets, "features: [{{name: bench, description: benchmark, assets: [{}]}}]", names.join(", "));
    save("metadata.yaml", &assets)?;
    Ok(pack)
}

/// The name of an object; with an `s` it is the plural of its kind.
pub(crate) fn name(number: usize) -> String {
    format!("thing{number}")
}

/// The role for these kinds, in addition to the operator's own.
pub(crate) fn role() -> String {
    let plurals: Vec<String> = (0..KINDS).map(|number| format!("{}s", name(number))).collect();
    let (account, namespace) = (api::FIELD_MANAGER, api::hco::NAMESPACE);
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: bench}}\nrules:\n\
         - {{apiGroups: [{GROUP}], resources: [{}], verbs: [get, list, watch, create, patch]}}\n\
         - {{apiGroups: [\"\"], resources: [configmaps], verbs: [get, list, watch, create, patch]}}\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: bench}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bench}}\n\
         subjects: [{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]\n",
        plurals.join(", ")
    )
}

/// The CRD of a kind.
pub(crate) fn crd(number: usize) -> Value {
    let spec = json!({"type": "object", "properties": {"mode": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let plural = format!("{}s", name(number));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Cluster", "names": {"plural": plural, "kind": format!("Thing{number}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

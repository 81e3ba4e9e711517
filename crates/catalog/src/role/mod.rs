//! The RBAC roles that the products need for the objects of a pack, and no more.

mod advisor;
mod manifest;
mod objects;
#[cfg(test)]
mod tests;

pub use advisor::{ADVISOR, ADVISOR_LEASE, advisor_role, advisor_role_objects};

use crate::pack::asset::{Asset, Prune};
use crate::pack::catalog::Catalog;
use crate::yaml::read::documents;
use change::{Key, Kind, backup};
use serde_json::Value;
use std::collections::BTreeSet;

/// What the first line of a role says about it.
pub const PROMISE: &str = "Writes are by name; no wildcard, no escalate, no bind.";

/// An object that the role covers.
struct Granted {
    key: Key,
    /// Whether it is a tombstone: it is no longer created.
    is_tombstone: bool,
    /// Whether it may be deleted.
    may_delete: bool,
    /// The names of its backups.
    backups: BTreeSet<String>,
}

/// A kind whose objects a template looks up.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LookedUp {
    kind: Kind,
    /// Whether it looks up single objects, and not all of them.
    by_name: bool,
}

impl Granted {
    fn verbs(&self) -> &'static str {
        let kind = self.key.kind.kind.as_str();
        let may_delete = self.may_delete && !api::NEVER_REMOVED.contains(&kind);
        // Without a HyperConverged there is nothing to reconcile.
        let may_create = !self.is_tombstone && kind != api::hco::KIND;
        match (may_create, may_delete) {
            (true, true) => "create, get, patch, delete",
            (true, false) => "create, get, patch",
            (false, true) => "get, patch, delete",
            (false, false) => "get, patch",
        }
    }
}

/// The service account, roles and bindings of an operator in this namespace, as YAML. The error lists every reason why there is none.
pub fn role(catalog: &Catalog, namespace: &str) -> Result<String, Vec<String>> {
    let (mut objects, mut reads, mut problems) = (Vec::new(), BTreeSet::new(), Vec::new());
    for asset in &catalog.assets {
        match objects::key(catalog, asset, namespace, &mut reads) {
            Ok(key) => {
                // What the Go advisor made under another name is managed there.
                if let Some(name) = catalog.former_name(&asset.name) {
                    let key = Key { name: name.to_owned(), ..key.clone() };
                    let backups = backup::names(&key).into_iter().collect();
                    objects.push(Granted {
                        may_delete: asset.prune != Prune::Never,
                        is_tombstone: false,
                        key,
                        backups,
                    });
                }
                let backups = backups(catalog, asset, &key);
                objects.push(Granted { may_delete: asset.prune != Prune::Never, is_tombstone: false, key, backups });
            }
            Err(why) => problems.push(why),
        }
    }
    for tombstone in &catalog.tombstones {
        let kind = Kind::new(&tombstone.api_version, &tombstone.kind);
        let namespace = tombstone.namespace.clone().unwrap_or_default();
        let key = Key { kind, namespace, name: tombstone.name.clone() };
        // It is never adopted.
        objects.push(Granted { key, is_tombstone: true, may_delete: true, backups: BTreeSet::new() });
    }
    problems.extend(objects.iter().filter_map(|granted| unsafe_grant(&granted.key.kind, &granted.key.name)));
    problems.extend(reads.iter().filter_map(|read| unsafe_grant(&read.kind, "")));
    if problems.is_empty() { Ok(manifest::text(&objects, &reads, namespace)) } else { Err(problems) }
}

/// The key of an asset's object, with the HyperConverged in this namespace; nothing if it depends on the cluster.
pub(crate) fn key(catalog: &Catalog, asset: &Asset, namespace: &str) -> Option<Key> {
    objects::key(catalog, asset, namespace, &mut BTreeSet::new()).ok()
}

/// The names of the backups of an asset's object. They depend on its namespace, so those of the usual namespaces are included: then
/// one role fits an operator in any of them.
fn backups(catalog: &Catalog, asset: &Asset, key: &Key) -> BTreeSet<String> {
    let usual = api::hco::NAMESPACES
        .iter()
        .filter_map(|namespace| objects::key(catalog, asset, namespace, &mut BTreeSet::new()).ok());
    usual.chain([key.clone()]).flat_map(|key| backup::names(&key)).collect()
}

/// The same as values.
pub fn role_objects(catalog: &Catalog, namespace: &str) -> Result<Vec<Value>, Vec<String>> {
    let text = role(catalog, namespace)?;
    documents(&text).map_err(|error| vec![format!("the generated role is not YAML: {}", error.message)])
}

/// Why a kind and a name cannot be granted.
fn unsafe_grant(kind: &Kind, name: &str) -> Option<String> {
    if !backup::has_safe_place(kind) {
        return Some(format!(
            "Secret {name}: a role for it lets the operator read every Secret, and make a token of any account; remove it from the pack"
        ));
    }
    // Other characters could not be part of a name, but of the role's own YAML.
    let is_plain = |text: &str| text.chars().all(|character| character.is_alphanumeric() || ".-_:".contains(character));
    let texts = [kind.group.as_str(), kind.kind.as_str(), name];
    let strange = texts.into_iter().find(|text| !is_plain(text))?;
    Some(format!("{strange:?} is not the name of an object, a kind or a group; correct the asset that has it"))
}

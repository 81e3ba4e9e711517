//! The seed of a machine as a Secret that goes with it: KubeVirt accepts no more than 2 KiB of user data in a `VirtualMachine` itself.

use crate::kubevirt::object;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, ObjectMeta};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The keys that KubeVirt reads, and the files of a seed.
const KEYS: [(&str, &str); 2] = [(USER, "user-data"), (NETWORK, "network-config")];
const USER: &str = "userdata";
const NETWORK: &str = "networkdata";

/// The Secret of a machine with these files. Its name says which machine and which content, so that one that exists is the same, and nobody
/// has to read or change it.
pub(crate) fn secret(machine: &DynamicObject, files: &BTreeMap<String, String>) -> Secret {
    let (name, uid) = (object::id(machine).0, machine.metadata.uid.clone().unwrap_or_default());
    let known = KEYS.into_iter().filter_map(|(key, file)| Some((key.to_owned(), files.get(file)?.clone())));
    let data: BTreeMap<String, String> = known.collect();
    let digest = Sha256::digest(json!([uid, data]).to_string());
    let digest: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let kind = object::kind();
    let owner = OwnerReference {
        api_version: kind.api_version,
        kind: kind.kind,
        name: name.clone(),
        uid,
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta {
        name: Some(format!("{name}-seed-{digest}")),
        namespace: machine.metadata.namespace.clone(),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Secret { metadata, immutable: Some(true), string_data: Some(data), ..Secret::default() }
}

/// How a `VirtualMachine` names that Secret.
pub(crate) fn source(secret: &Secret) -> Value {
    let name = json!({"name": secret.metadata.name});
    let has_network = secret.string_data.as_ref().is_some_and(|data| data.contains_key(NETWORK));
    match has_network {
        true => json!({"secretRef": name, "networkDataSecretRef": name}),
        false => json!({"secretRef": name}),
    }
}

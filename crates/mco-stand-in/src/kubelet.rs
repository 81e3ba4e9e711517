//! The kubelet config controller: a MachineConfig for every KubeletConfig and pool that it selects.

use crate::snapshot::{Action, Kind, Snapshot, Write};
use crate::templates::{KUBELET_CONF, default_kubelet_configuration, file, machine_config};
use crate::{API_VERSION, patch, selector};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The annotation of a KubeletConfig with the number at the end of its MachineConfigs' names; the first one has none.
const SUFFIX: &str = "machineconfiguration.openshift.io/mc-name-suffix";
/// More KubeletConfigs for one pool are refused.
const MAX_SUFFIX: u32 = 9;
/// What only the operator may set.
const RESERVED: [&str; 6] =
    ["cgroupDriver", "clusterDNS", "clusterDomain", "failSwapOn", "featureGates", "staticPodPath"];

/// What is missing of all KubeletConfigs.
pub(crate) fn step(snapshot: &Snapshot, at: &str) -> Vec<Write> {
    let mut sorted: Vec<&Value> = snapshot.kubelet_configs.values().collect();
    sorted.sort_by_key(|config| (text(&config["metadata"]["creationTimestamp"]), name_of(config)));
    let mut suffixes: BTreeMap<&str, String> = BTreeMap::new();
    for config in &sorted {
        if let Some(suffix) = config["metadata"]["annotations"][SUFFIX].as_str() {
            suffixes.insert(name_of(config), suffix.to_owned());
        }
    }
    let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
    let mut writes = Vec::new();
    for config in sorted {
        if config["metadata"]["deletionTimestamp"].is_string() {
            writes.extend(release(snapshot, config));
            continue;
        }
        let made = check(config).and_then(|()| of_config(snapshot, config, &mut suffixes));
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                writes.extend(report(config, "Failure", "False", &format!("Error: {error}"), at));
                continue;
            }
        };
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        let suffix = suffixes.get(name_of(config)).map(String::as_str).unwrap_or_default();
        let metadata = json!({"metadata": {"annotations": {SUFFIX: suffix}, "finalizers": finalizers(config, &names)}});
        writes.extend(Write::patch(Kind::KubeletConfig, name_of(config), config, &metadata));
        writes.extend(report(config, "Success", "True", "Success", at));
        wanted.extend(made);
    }
    for (name, config) in &wanted {
        writes.extend(match snapshot.machine_configs.get(name) {
            None => Some(Write::new(Kind::MachineConfig, name, Action::Create(config.clone()))),
            Some(found) => Write::patch(Kind::MachineConfig, name, found, &json!({"spec": config["spec"]})),
        });
    }
    let generated =
        snapshot.machine_configs.iter().filter(|(name, config)| owner(config).is_some() && is_generated(name));
    let orphans = generated.filter(|(name, config)| {
        // A KubeletConfig that became invalid keeps what it made.
        let is_owned = owner(config).is_some_and(|owner| is_failed(snapshot, owner));
        !wanted.contains_key(*name) && !is_owned
    });
    writes.extend(orphans.map(|(name, _)| Write::new(Kind::MachineConfig, name, Action::Delete)));
    writes
}

/// Whether a KubeletConfig exists, is not being deleted, and cannot be used.
fn is_failed(snapshot: &Snapshot, name: &str) -> bool {
    snapshot
        .kubelet_configs
        .get(name)
        .is_some_and(|config| config["metadata"]["deletionTimestamp"].is_null() && check(config).is_err())
}

/// The MachineConfigs of one KubeletConfig.
fn of_config<'a>(
    snapshot: &Snapshot,
    config: &'a Value,
    suffixes: &mut BTreeMap<&'a str, String>,
) -> Result<BTreeMap<String, Value>, String> {
    let pools = pools_of(snapshot, config);
    if pools.is_empty() {
        return Err(format!("could not find any MachineConfigPool set for KubeletConfig {}", name_of(config)));
    }
    if !suffixes.contains_key(name_of(config)) {
        let shares_a_pool = |other: &str| {
            let others = snapshot.kubelet_configs.get(other).map(|other| pools_of(snapshot, other)).unwrap_or_default();
            others.iter().any(|pool| pools.contains(pool))
        };
        let taken = suffixes.iter().filter(|(name, _)| shares_a_pool(name)).map(|(_, suffix)| suffix);
        let next = taken.map(|suffix| suffix.parse::<u32>().unwrap_or_default() + 1).max();
        if next.is_some_and(|next| next > MAX_SUFFIX) {
            return Err("max number of supported kubelet config (10) has been reached".into());
        }
        suffixes.insert(name_of(config), next.map(|next| next.to_string()).unwrap_or_default());
    }
    let suffix = match suffixes.get(name_of(config)).map(String::as_str).unwrap_or_default() {
        "" => String::new(),
        number => format!("-{number}"),
    };
    let made = pools.iter().map(|pool| {
        let name = format!("99-{pool}-generated-kubelet{suffix}");
        let mut made = machine_config(&name, pool, &files(config));
        made["metadata"]["ownerReferences"] = json!([{
            "apiVersion": API_VERSION, "kind": "KubeletConfig", "name": name_of(config),
            "uid": text(&config["metadata"]["uid"]),
        }]);
        (name, made)
    });
    Ok(made.collect())
}

/// The files that a KubeletConfig is turned into.
fn files(config: &Value) -> Vec<Value> {
    let spec = &config["spec"];
    let mut own = spec["kubeletConfig"].clone();
    let mut reserved: BTreeMap<&str, String> = BTreeMap::new();
    // What is reserved for the system reaches the kubelet through its environment.
    for resource in ["memory", "cpu", "ephemeral-storage"] {
        if let Some(value) = own["systemReserved"][resource].as_str() {
            reserved.insert(resource, value.to_owned());
        }
        if let Some(map) = own.pointer_mut("/systemReserved").and_then(Value::as_object_mut) {
            map.remove(resource);
        }
    }
    let mut whole = default_kubelet_configuration();
    if own.is_object() {
        patch::merge(&mut whole, &own);
    }
    let mut files = vec![file(KUBELET_CONF, whole.to_string().as_bytes())];
    let is_automatic = spec["autoSizingReserved"].as_bool();
    if is_automatic.is_some() || !reserved.is_empty() {
        let of = |resource: &str, default: &str| reserved.get(resource).map_or(default, String::as_str).to_owned();
        let content = format!(
            "NODE_SIZING_ENABLED={}\nSYSTEM_RESERVED_MEMORY={}\nSYSTEM_RESERVED_CPU={}\nSYSTEM_RESERVED_ES={}\n",
            is_automatic.unwrap_or_default() && reserved.is_empty(),
            of("memory", "1Gi"),
            of("cpu", "500m"),
            of("ephemeral-storage", "1Gi"),
        );
        files.push(file("/etc/node-sizing-enabled.env", content.as_bytes()));
    }
    if let Some(level) = spec["logLevel"].as_i64() {
        let content = format!("[Service]\nEnvironment=\"KUBELET_LOG_LEVEL={level}\"\n");
        files.push(file("/etc/systemd/system/kubelet.service.d/20-logging.conf", content.as_bytes()));
    }
    files
}

/// Whether a KubeletConfig sets only what it may.
fn check(config: &Value) -> Result<(), String> {
    let spec = &config["spec"];
    if let Some(level) = spec["logLevel"].as_i64().filter(|level| !(1..=10).contains(level)) {
        return Err(format!("KubeletConfig's LogLevel is not valid [1,10]: {level}"));
    }
    let own = &spec["kubeletConfig"];
    if let Some(field) = RESERVED.iter().find(|field| !own[**field].is_null()) {
        let value = &own[*field];
        return Err(format!("KubeletConfiguration: {field} is not allowed to be set, but contains: {value}"));
    }
    if !own["memorySwap"]["swapBehavior"].is_null() {
        let value = &own["memorySwap"]["swapBehavior"];
        return Err(format!("KubeletConfiguration: swapBehavior is not allowed to be set, but contains: {value}"));
    }
    let is_reserved = own["systemReserved"].as_object().is_some_and(|map| !map.is_empty());
    if is_reserved && spec["autoSizingReserved"] == true {
        return Err("KubeletConfiguration: autoSizingReserved and systemdReserved cannot be set together".into());
    }
    Ok(())
}

/// Sets the status of a KubeletConfig.
fn report(config: &Value, kind: &str, status: &str, message: &str, at: &str) -> Option<Write> {
    let old = &config["status"]["conditions"][0];
    let is_same = old["type"] == kind && old["status"] == status && old["message"] == message;
    let time = if is_same { old["lastTransitionTime"].clone() } else { json!(at) };
    let condition = json!({"type": kind, "status": status, "message": message, "lastTransitionTime": time});
    let condition = if is_same { old.clone() } else { condition };
    let wanted = json!({"status": {"observedGeneration": config["metadata"]["generation"], "conditions": [condition]}});
    Write::patch_status(Kind::KubeletConfig, name_of(config), config, &wanted)
}

/// Lets go of a KubeletConfig that is being deleted, once its MachineConfigs are deleted.
fn release(snapshot: &Snapshot, config: &Value) -> Option<Write> {
    let is_owned = |(name, made): (&String, &Value)| is_generated(name) && owner(made) == Some(name_of(config));
    if snapshot.machine_configs.iter().any(is_owned) {
        return None;
    }
    let wanted = json!({"metadata": {"finalizers": finalizers(config, &[])}});
    Write::patch(Kind::KubeletConfig, name_of(config), config, &wanted)
}

/// The finalizers of a KubeletConfig: those of others, and the names of its MachineConfigs.
fn finalizers(config: &Value, own: &[&str]) -> Value {
    let known = config["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let others = known.into_iter().filter(|name| !name.as_str().is_some_and(is_generated));
    let all: Vec<Value> = others.chain(own.iter().map(|name| json!(name))).collect();
    if all.is_empty() { Value::Null } else { json!(all) }
}

fn pools_of<'a>(snapshot: &'a Snapshot, config: &Value) -> Vec<&'a str> {
    let wanted = &config["spec"]["machineConfigPoolSelector"];
    let selected = snapshot.pools.iter().filter(|(_, pool)| selector::selects(wanted, &pool["metadata"]["labels"]));
    selected.map(|(name, _)| name.as_str()).collect()
}

/// Whether this is a name that this controller gives.
fn is_generated(name: &str) -> bool {
    name.starts_with("99-") && name.contains("-generated-kubelet")
}

/// The KubeletConfig that a MachineConfig was made from.
fn owner(config: &Value) -> Option<&str> {
    let owner = &config["metadata"]["ownerReferences"][0];
    owner["name"].as_str().filter(|_| owner["kind"] == "KubeletConfig")
}

fn name_of(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

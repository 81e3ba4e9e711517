//! Merges the MachineConfigs of a pool into one.

use crate::IGNITION_VERSION;
use serde_json::{Map, Value, json};

/// The lists of an Ignition config whose items have a key: an item with the same key is merged, others are appended.
const KEYED: [(&str, &str); 11] = [
    ("dropins", "name"),
    ("files", "path"),
    ("directories", "path"),
    ("links", "path"),
    ("disks", "device"),
    ("filesystems", "device"),
    ("raid", "name"),
    ("luks", "name"),
    ("units", "name"),
    ("users", "name"),
    ("groups", "name"),
];
/// Lists of which both parts stay, without duplicates.
const APPENDED: [&str; 2] = ["sshAuthorizedKeys", "append"];
/// Values that are replaced as a whole, because their parts belong together.
const WHOLE: [&str; 1] = ["contents"];

/// The spec of the MachineConfig that these are merged into; they are sorted by name, and a later one wins.
pub(crate) fn specs(sorted: &[&Value]) -> Value {
    let mut config = json!({});
    for spec in sorted {
        if spec["config"].is_object() {
            merge_objects(&mut config, &spec["config"]);
        }
    }
    config["ignition"]["version"] = json!(IGNITION_VERSION);
    // The operator always overwrites files, Ignition only where it is asked to.
    for file in config.pointer_mut("/storage/files").and_then(Value::as_array_mut).into_iter().flatten() {
        if file["overwrite"].is_null() {
            file["overwrite"] = json!(true);
        }
    }
    let last = |key: &str| sorted.iter().filter_map(|spec| spec[key].as_str()).rfind(|text| !text.is_empty());
    let mut kernel_types = sorted.iter().filter_map(|spec| spec["kernelType"].as_str());
    let kernel_type = kernel_types.rfind(|kind| !["", "default"].contains(kind));
    // Appended as they are, also where one is there already.
    let all = |key: &str| sorted.iter().filter_map(|spec| spec[key].as_array()).flatten().cloned().collect::<Value>();
    json!({
        "config": config,
        "kernelArguments": all("kernelArguments"),
        "extensions": all("extensions"),
        "kernelType": kernel_type.unwrap_or("default"),
        "fips": sorted.iter().any(|spec| spec["fips"] == true),
        "osImageURL": last("osImageURL").unwrap_or_default(),
        "baseOSExtensionsContainerImage": last("baseOSExtensionsContainerImage").unwrap_or_default(),
    })
}

fn merge_objects(parent: &mut Value, child: &Value) {
    let (Some(parent), Some(child)) = (parent.as_object_mut(), child.as_object()) else { return };
    for (key, value) in child {
        merge_entry(parent, key, value);
    }
}

fn merge_entry(parent: &mut Map<String, Value>, key: &str, value: &Value) {
    let keyed = KEYED.iter().find(|(list, _)| *list == key).map(|(_, by)| *by);
    let old = parent.entry(key.to_owned()).or_insert(Value::Null);
    match (old, value) {
        (_, Value::Null) => {}
        (Value::Array(items), Value::Array(added)) if keyed.is_some() => {
            let by = keyed.unwrap_or_default();
            for item in added {
                match items.iter_mut().find(|known| known[by] == item[by]) {
                    Some(known) => merge_objects(known, item),
                    None => items.push(item.clone()),
                }
            }
        }
        (Value::Array(items), Value::Array(added)) if APPENDED.contains(&key) => {
            let new: Vec<Value> = added.iter().filter(|value| !items.contains(value)).cloned().collect();
            items.extend(new);
        }
        (old @ Value::Object(_), Value::Object(_)) if !WHOLE.contains(&key) => merge_objects(old, value),
        (old, value) => old.clone_from(value),
    }
}

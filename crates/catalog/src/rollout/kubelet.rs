//! What a KubeletConfig sets, and what the kubelet's files in a rendered configuration contain.

use super::contents::{Entries, normalized};
use change::{Digest, data_url};
use serde_json::{Value, json};

/// The kubelet's configuration, into which every KubeletConfig of a pool is rendered.
const FILE: &str = "/etc/kubernetes/kubelet.conf";
/// Whether the kubelet computes the resources it reserves.
const SIZING: &str = "/etc/node-sizing-enabled.env";
const AUTO_SIZING: &str = "kubelet autoSizingReserved";

/// Adds what the spec of a KubeletConfig sets.
pub(super) fn add_spec(entries: &mut Entries, spec: &Value) {
    for (field, value) in spec.as_object().into_iter().flatten() {
        match field.as_str() {
            "machineConfigPoolSelector" => {}
            "kubeletConfig" => add_leaves(entries, "kubelet ", value),
            "autoSizingReserved" => {
                entries.insert(AUTO_SIZING.to_owned(), Digest::of(&json!(value.as_bool() == Some(true))));
            }
            // It is rendered in a way that is not read here, so it counts as different from what nodes run.
            other => {
                entries.insert(format!("kubelet {other} (not compared)"), Digest::of(value));
            }
        }
    }
}

/// Adds the settings in a file of a rendered configuration, if it is one of the kubelet's.
pub(super) fn add_file(entries: &mut Entries, path: &str, file: &Value) {
    let content = || String::from_utf8(data_url::decode(file["contents"]["source"].as_str()?)?).ok();
    match path {
        FILE => {
            let parsed = content().and_then(|text| serde_saphyr::from_str::<Value>(&text).ok());
            add_leaves(entries, "kubelet ", &parsed.unwrap_or_default());
        }
        SIZING => {
            let is_on =
                content().is_some_and(|text| text.lines().any(|line| line.trim() == "NODE_SIZING_ENABLED=true"));
            entries.insert(AUTO_SIZING.to_owned(), Digest::of(&json!(is_on)));
        }
        _ => {}
    }
}

/// Adds every value below maps; a list is one value.
fn add_leaves(entries: &mut Entries, prefix: &str, value: &Value) {
    for (key, below) in value.as_object().into_iter().flatten() {
        match below {
            Value::Object(fields) if !fields.is_empty() => add_leaves(entries, &format!("{prefix}{key}."), below),
            leaf => {
                entries.insert(format!("{prefix}{key}"), Digest::of(&normalized(leaf).unwrap_or_default()));
            }
        }
    }
}

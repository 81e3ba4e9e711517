//! The files and systemd units that MachineConfigs put on nodes.

use crate::catalogue::all_of;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;

/// What one MachineConfig puts on a node.
pub(crate) struct NodeFiles {
    pub(crate) name: String,
    /// Text and mode by path.
    pub(crate) files: BTreeMap<String, (String, u64)>,
    /// Text by name; with a slash, a drop-in of a unit.
    pub(crate) units: BTreeMap<String, String>,
}

/// Those of all MachineConfigs of the catalogue.
pub(crate) fn all() -> Vec<NodeFiles> {
    all_of("MachineConfig").iter().map(of).collect()
}

fn of(object: &Value) -> NodeFiles {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let file = |file: &Value| (text(&file["path"]), (content(&file["contents"]), file["mode"].as_u64().unwrap()));
    let mut units = BTreeMap::new();
    for unit in list("/spec/config/systemd/units") {
        let name = text(&unit["name"]);
        for drop_in in unit["dropins"].as_array().into_iter().flatten() {
            units.insert(format!("{name}.d/{}", text(&drop_in["name"])), text(&drop_in["contents"]));
        }
        if unit["contents"].is_string() {
            units.insert(name, text(&unit["contents"]));
        }
    }
    let files = list("/spec/config/storage/files").iter().map(file).collect();
    NodeFiles { name: text(&object["metadata"]["name"]), files, units }
}

fn content(contents: &Value) -> String {
    let bytes = change::data_url::decode(contents["source"].as_str().unwrap()).unwrap();
    let mut text = String::new();
    match contents["compression"].as_str() {
        Some("gzip") => GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap(),
        _ => bytes.as_slice().read_to_string(&mut text).unwrap(),
    };
    text
}

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

/// Whoever approves a script that runs as root on every node has to be able to read it: each line is in the difference, and in what
/// `plan show --full` makes of the object in the status.
#[test]
fn every_line_of_the_files_and_units_is_shown_in_a_plan() {
    let mut lines = 0;
    for object in all_of("MachineConfig") {
        let kind = change::Kind::new(object["apiVersion"].as_str().unwrap(), "MachineConfig");
        let in_status = change::diff::shown_object(&kind, &object).unwrap();
        for object_shown in [&object, &in_status] {
            let shown = change::diff::text(&change::diff::of_wanted(None, object_shown, &[]));
            let NodeFiles { name, files, units } = of(&object);
            let texts = files.values().map(|(text, _)| text).chain(units.values());
            for line in texts.flat_map(|text| text.lines()) {
                assert!(shown.contains(&format!("+  {line}\n")), "{name}: {line:?} is not in\n{shown}");
                lines += 1;
            }
            assert!(shown.len() < 32 * 1024, "{name} does not fit into the status: {} bytes", shown.len());
        }
    }
    assert!(lines > 500, "{lines} lines");
}

//! Whether a MachineConfig contains a valid Ignition config.

use serde_json::Value;
use std::collections::BTreeSet;

const VERSIONS: [&str; 6] = ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"];
const KERNEL_TYPES: [&str; 4] = ["", "default", "realtime", "64k-pages"];
const EXTENSIONS: [&str; 8] =
    ["ipsec", "kerberos", "kernel-devel", "sandboxed-containers", "sysstat", "two-node-ha", "usbguard", "wasm"];
const UNITS: [&str; 12] = [
    "automount",
    "device",
    "mount",
    "path",
    "scope",
    "service",
    "slice",
    "snapshot",
    "socket",
    "swap",
    "target",
    "timer",
];

/// Checks the spec of a MachineConfig.
pub(crate) fn check(spec: &Value) -> Result<(), String> {
    let kernel_type = spec["kernelType"].as_str().unwrap_or_default();
    if !KERNEL_TYPES.contains(&kernel_type) {
        return Err(format!("kernelType={kernel_type} is invalid"));
    }
    let extensions = spec["extensions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let unknown: Vec<&str> = extensions.filter(|extension| !EXTENSIONS.contains(extension)).collect();
    if !unknown.is_empty() {
        return Err(format!("invalid extensions found: {}", unknown.join(", ")));
    }
    check_config(&spec["config"]).map_err(|error| format!("invalid ignition config: {error}"))
}

/// Checks an Ignition config; none at all is valid, because a MachineConfig may consist of kernel arguments alone.
fn check_config(config: &Value) -> Result<(), String> {
    let Some(entries) = config.as_object() else {
        return if config.is_null() { Ok(()) } else { Err("it is not an object".into()) };
    };
    if entries.is_empty() {
        return Ok(());
    }
    match config["ignition"]["version"].as_str() {
        Some(version) if VERSIONS.contains(&version) => {}
        Some(version) => return Err(format!("unknown version {version}; supported versions: {}", VERSIONS.join(", "))),
        None => return Err("it has no ignition.version".into()),
    }
    for section in ["storage", "systemd", "passwd"] {
        if !config[section].is_null() && !config[section].is_object() {
            return Err(format!("{section} is not an object"));
        }
    }
    each(config, "/storage/files", "path", check_file)?;
    each(config, "/storage/directories", "path", |directory| check_path(directory, "path"))?;
    each(config, "/storage/links", "path", |link| check_path(link, "path"))?;
    each(config, "/systemd/units", "name", check_unit)?;
    each(config, "/passwd/users", "name", |_| Ok(()))?;
    each(config, "/passwd/groups", "name", |_| Ok(()))
}

/// Checks the items of a list, whose keys must differ.
fn each(config: &Value, pointer: &str, key: &str, check: impl Fn(&Value) -> Result<(), String>) -> Result<(), String> {
    let Some(list) = config.pointer(pointer).filter(|list| !list.is_null()) else { return Ok(()) };
    let Some(items) = list.as_array() else { return Err(format!("{pointer} is not a list")) };
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(name) = item[key].as_str().filter(|name| !name.is_empty()) else {
            return Err(format!("{pointer}/{index} has no {key}"));
        };
        if !seen.insert(name) {
            return Err(format!("{pointer} contains {name} twice"));
        }
        check(item)?;
    }
    Ok(())
}

fn check_path(item: &Value, key: &str) -> Result<(), String> {
    let path = item[key].as_str().unwrap_or_default();
    let is_clean = path.strip_prefix('/').is_some_and(|rest| {
        !rest.is_empty() && rest.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
    });
    if is_clean { Ok(()) } else { Err(format!("{path:?} is not an absolute and clean path")) }
}

fn check_file(file: &Value) -> Result<(), String> {
    check_path(file, "path")?;
    let path = file["path"].as_str().unwrap_or_default();
    let mode = &file["mode"];
    if !mode.is_null() && mode.as_u64().is_none_or(|mode| mode > 0o7777) {
        return Err(format!("file {path} has an invalid mode {mode}"));
    }
    let source = &file["contents"]["source"];
    let is_url = |source: &str| source.is_empty() || source.starts_with("data:") && source.contains(',');
    if !source.is_null() && !source.as_str().is_some_and(is_url) {
        return Err(format!("file {path} has a source that is not a data URL"));
    }
    Ok(())
}

fn check_unit(unit: &Value) -> Result<(), String> {
    let name = unit["name"].as_str().unwrap_or_default();
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix).unwrap_or_default();
    if !UNITS.contains(&suffix) {
        return Err(format!("invalid systemd unit extension of {name}"));
    }
    each(unit, "/dropins", "name", |dropin| match dropin["name"].as_str().is_some_and(|name| name.ends_with(".conf")) {
        true => Ok(()),
        false => Err(format!("a drop-in of {name} does not end with .conf")),
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    #[test]
    fn an_invalid_config_is_refused_with_its_reason() {
        let config = |mut config: Value| {
            config["ignition"] = json!({"version": "3.4.0"});
            json!({"config": config})
        };
        let file = |file: Value| config(json!({"storage": {"files": [file]}}));
        let unit = |unit: Value| config(json!({"systemd": {"units": [unit]}}));
        let twice = json!([{"path": "/etc/a"}, {"path": "/etc/a"}]);
        let cases: [(Value, Option<&str>); 22] = [
            (json!({}), None),
            (json!({"kernelArguments": ["nosmt"]}), None),
            (json!({"config": {"ignition": {"version": "3.5.0"}}}), None),
            (file(json!({"path": "/etc/a", "mode": 420, "contents": {"source": "data:,x"}})), None),
            (unit(json!({"name": "a.service", "dropins": [{"name": "10-a.conf"}]})), None),
            (json!({"kernelType": "fast"}), Some("kernelType=fast is invalid")),
            (json!({"extensions": ["usbguard", "telnet"]}), Some("invalid extensions found: telnet")),
            (json!({"config": "x"}), Some("it is not an object")),
            (json!({"config": {"storage": {}}}), Some("it has no ignition.version")),
            (json!({"config": {"ignition": {"version": "2.2.0"}}}), Some("unknown version 2.2.0")),
            (json!({"config": {"ignition": {"version": "4.0.0"}}}), Some("unknown version 4.0.0")),
            (config(json!({"storage": []})), Some("storage is not an object")),
            (config(json!({"storage": {"files": {}}})), Some("/storage/files is not a list")),
            (file(json!({"mode": 420})), Some("/storage/files/0 has no path")),
            (file(json!({"path": "etc/a"})), Some("\"etc/a\" is not an absolute")),
            (file(json!({"path": "/etc/../a"})), Some("is not an absolute")),
            (file(json!({"path": "/etc/a/"})), Some("is not an absolute")),
            (file(json!({"path": "/etc/a", "mode": 65535})), Some("file /etc/a has an invalid mode 65535")),
            (file(json!({"path": "/etc/a", "contents": {"source": "x"}})), Some("is not a data URL")),
            (config(json!({"storage": {"files": twice}})), Some("/storage/files contains /etc/a twice")),
            (unit(json!({"name": "a"})), Some("invalid systemd unit extension of a")),
            (unit(json!({"name": "a.service", "dropins": [{"name": "a"}]})), Some("does not end with .conf")),
        ];
        for (spec, expected) in cases {
            match (check(&spec), expected) {
                (Ok(()), None) => {}
                (Err(error), Some(expected)) => assert!(error.contains(expected), "{spec}: {error}"),
                (found, _) => panic!("{spec}: {found:?} instead of {expected:?}"),
            }
        }
    }
}

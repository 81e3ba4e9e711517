//! The parts of a node's configuration that one object brings in: files, units, kernel arguments, settings of the kubelet.

use super::kubelet;
use change::{Digest, Kind};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Parts by name, each with the digest of its value.
pub(super) type Entries = BTreeMap<String, Digest>;

/// The group of everything that is rendered into the configuration of nodes.
const GROUP: &str = "machineconfiguration.openshift.io";
const KERNEL_ARGUMENT: &str = "kernel argument ";
const EXTENSION: &str = "extension ";
/// The names of parts that are appended, also if another MachineConfig brings in the same one.
pub(super) const APPENDED: [&str; 2] = [KERNEL_ARGUMENT, EXTENSION];

/// The parts that one object brings in, or that a rendered configuration consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents(pub(super) Entries);

impl Contents {
    /// The parts that an object of this kind brings in; `None` if that cannot be told from its content.
    pub fn of(kind: &Kind, object: &Value) -> Option<Contents> {
        let mut entries = Entries::new();
        match (kind.group.as_str(), kind.kind.as_str()) {
            (GROUP, "MachineConfig") => add_machine_config(&mut entries, &object["spec"]),
            (GROUP, "KubeletConfig") => kubelet::add_spec(&mut entries, &object["spec"]),
            _ => return None,
        }
        Some(Contents(entries))
    }

    /// The parts of a rendered configuration, with the kubelet's settings read from its files.
    pub(super) fn of_rendered(object: &Value) -> Contents {
        let mut entries = Entries::new();
        add_machine_config(&mut entries, &object["spec"]);
        for file in object["spec"]["config"]["storage"]["files"].as_array().into_iter().flatten() {
            kubelet::add_file(&mut entries, file["path"].as_str().unwrap_or_default(), file);
        }
        Contents(entries)
    }
}

fn add_machine_config(entries: &mut Entries, spec: &Value) {
    for (field, value) in spec.as_object().into_iter().flatten() {
        match field.as_str() {
            "config" => add_ignition(entries, value),
            "kernelArguments" => add_each(entries, KERNEL_ARGUMENT, value),
            "extensions" => add_each(entries, EXTENSION, value),
            "kernelType" if value == "default" => {}
            // What is not set is not brought in.
            other
                if [json!(false), json!(null), json!("")].contains(value)
                    || other == "baseOSExtensionsContainerImage" => {}
            other => {
                entries.insert(other.to_owned(), Digest::of(value));
            }
        }
    }
}

fn add_ignition(entries: &mut Entries, config: &Value) {
    for (section, value) in config.as_object().into_iter().flatten() {
        match section.as_str() {
            // The version says only how the rest is written.
            "ignition" => add_value(entries, "ignition", &without_version(value)),
            "storage" => {
                for (list, items) in value.as_object().into_iter().flatten() {
                    let name = list
                        .strip_suffix("ies")
                        .map_or_else(|| list.strip_suffix('s').unwrap_or(list).to_owned(), |stem| format!("{stem}y"));
                    for item in items.as_array().into_iter().flatten() {
                        let id = item["path"].as_str().or(item["name"].as_str()).or(item["device"].as_str());
                        let (id, mut item) = (id.unwrap_or_default().to_owned(), item.clone());
                        if let Some(fields) =
                            item.as_object_mut().filter(|fields| fields.get("overwrite") == Some(&json!(true)))
                        {
                            // The machine-config operator adds it where it is missing.
                            fields.remove("overwrite");
                        }
                        add_value(entries, &format!("{name} {id}"), &item);
                    }
                }
            }
            "systemd" => value["units"].as_array().into_iter().flatten().for_each(|unit| add_unit(entries, unit)),
            other => add_value(entries, other, value),
        }
    }
}

/// Units of several MachineConfigs are merged field by field.
fn add_unit(entries: &mut Entries, unit: &Value) {
    let name = unit["name"].as_str().unwrap_or_default();
    for (field, value) in unit.as_object().into_iter().flatten() {
        match field.as_str() {
            "name" => {}
            "dropins" => {
                for dropin in value.as_array().into_iter().flatten() {
                    let file = dropin["name"].as_str().unwrap_or_default();
                    add_value(entries, &format!("unit {name} {file}"), dropin);
                }
            }
            // This, too, is a statement about the unit.
            "enabled" | "mask" => {
                entries.insert(format!("unit {name} {field}"), Digest::of(value));
            }
            field => add_value(entries, &format!("unit {name} {field}"), value),
        }
    }
}

fn add_each(entries: &mut Entries, prefix: &str, list: &Value) {
    for item in list.as_array().into_iter().flatten().filter_map(Value::as_str) {
        entries.insert(format!("{prefix}{item}"), Digest::of(&json!(true)));
    }
}

fn add_value(entries: &mut Entries, name: &str, value: &Value) {
    if let Some(value) = normalized(value) {
        entries.insert(name.to_owned(), Digest::of(&value));
    }
}

fn without_version(ignition: &Value) -> Value {
    let fields = ignition.as_object().into_iter().flatten().filter(|(name, _)| *name != "version");
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A value without empty parts, which a newer version of Ignition adds; `None` if nothing is left.
pub(super) fn normalized(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, value)| Some((name.clone(), normalized(value)?)));
            Some(Value::Object(fields.collect())).filter(|object| object != &json!({}))
        }
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(normalized).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::Contents;
    use change::Kind;
    use expect_test::expect;
    use serde_json::{Value, json};

    fn names(kind: &str, spec: &Value) -> String {
        let kind = Kind::new("machineconfiguration.openshift.io/v1", kind);
        let contents = Contents::of(&kind, &json!({"spec": spec})).unwrap();
        contents.0.into_keys().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_part_of_a_machine_config_has_a_name_and_what_is_not_set_has_none() {
        let spec = json!({
            "config": {
                "ignition": {"version": "3.2.0", "proxy": {}},
                "passwd": {"users": [{"name": "core"}]},
                "storage": {"files": [{"path": "/etc/a"}], "directories": [{"path": "/var/b"}], "disks": [{"device": "/dev/sda"}]},
                "systemd": {"units": [
                    {"name": "x.service", "enabled": false, "contents": "[Unit]", "dropins": [{"name": "y.conf", "contents": "z"}]},
                    {"name": "w.service", "contents": ""},
                ]},
            },
            "kernelArguments": ["quiet", "psi=1"], "extensions": ["usbguard"],
            "kernelType": "default", "fips": false, "osImageURL": "",
        });
        expect![[r#"
            directory /var/b
            disk /dev/sda
            extension usbguard
            file /etc/a
            kernel argument psi=1
            kernel argument quiet
            passwd
            unit x.service contents
            unit x.service enabled
            unit x.service y.conf"#]]
        .assert_eq(&names("MachineConfig", &spec));
        assert_eq!(names("MachineConfig", &json!({"kernelType": "realtime", "fips": true})), "fips\nkernelType");
    }

    #[test]
    fn every_setting_of_a_kubelet_config_has_a_name() {
        let spec = json!({
            "machineConfigPoolSelector": {"matchLabels": {"a": "b"}},
            "autoSizingReserved": true, "logLevel": 4,
            "kubeletConfig": {"maxPods": 500, "memorySwap": {"swapBehavior": "LimitedSwap"}, "list": [1], "empty": {}},
        });
        expect![[r#"
            kubelet autoSizingReserved
            kubelet empty
            kubelet list
            kubelet logLevel (not compared)
            kubelet maxPods
            kubelet memorySwap.swapBehavior"#]]
        .assert_eq(&names("KubeletConfig", &spec));
    }

    #[test]
    fn other_kinds_are_not_read() {
        assert_eq!(Contents::of(&Kind::new("config.openshift.io/v1", "Proxy"), &json!({})), None);
        assert_eq!(
            Contents::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfigPool"), &json!({})),
            None
        );
    }
}

//! The parts of a node's configuration that one object brings in: files, units, kernel arguments, settings of the kubelet.

use super::kubelet;
use change::{Digest, Kind};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Parts by name, each with the digest of its value.
pub(super) type Entries = BTreeMap<String, Digest>;

/// The group of everything that is rendered into the configuration of nodes.
const GROUP: &str = "machineconfiguration.openshift.io";

/// The parts that one object brings in, or that a rendered configuration consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    pub(super) entries: Entries,
    /// The names of what has a place in a list, such as files: a later object with the same name replaces it there.
    pub(super) orders: BTreeMap<String, Vec<String>>,
    /// What is appended to a list, also if it is there already: kernel arguments and extensions.
    pub(super) appended: BTreeMap<&'static str, Vec<String>>,
}

impl Contents {
    /// The parts that an object of this kind brings in; `None` if that cannot be told from its content.
    pub fn of(kind: &Kind, object: &Value) -> Option<Contents> {
        let mut contents = Contents::default();
        match (kind.group.as_str(), kind.kind.as_str()) {
            (GROUP, "MachineConfig") => contents.add_machine_config(&object["spec"]),
            (GROUP, "KubeletConfig") => kubelet::add_spec(&mut contents.entries, &object["spec"]),
            _ => return None,
        }
        Some(contents)
    }

    /// The parts of a rendered configuration, with the kubelet's settings read from its files.
    pub(super) fn of_rendered(object: &Value) -> Contents {
        let mut contents = Contents::default();
        contents.add_machine_config(&object["spec"]);
        for file in object["spec"]["config"]["storage"]["files"].as_array().into_iter().flatten() {
            kubelet::add_file(&mut contents.entries, file["path"].as_str().unwrap_or_default(), file);
        }
        contents
    }

    fn add_machine_config(&mut self, spec: &Value) {
        for (field, value) in spec.as_object().into_iter().flatten() {
            match field.as_str() {
                "config" => self.add_ignition(value),
                "kernelArguments" => self.append("kernel argument", value),
                "extensions" => self.append("extension", value),
                "kernelType" if value == "default" => {}
                // What is not set is not brought in.
                _ if [json!(false), json!(null), json!("")].contains(value) => {}
                other => self.insert(other.to_owned(), value),
            }
        }
    }

    fn add_ignition(&mut self, config: &Value) {
        for (section, value) in config.as_object().into_iter().flatten() {
            match section.as_str() {
                // The version says only how the rest is written.
                "ignition" => self.add_value("ignition".to_owned(), &without(value, "version")),
                "storage" => {
                    for (list, items) in value.as_object().into_iter().flatten() {
                        let name = singular(list);
                        self.add_list(&name, items, |contents, id, item| {
                            // The machine-config operator adds it where it is missing.
                            let item = if item["overwrite"] == true { &without(item, "overwrite") } else { item };
                            contents.add_value(format!("{name} {id}"), item);
                        });
                    }
                }
                "systemd" => {
                    self.add_value("systemd".to_owned(), &without(value, "units"));
                    self.add_list("unit", &value["units"], Contents::add_unit);
                }
                other => self.add_value(other.to_owned(), value),
            }
        }
    }

    /// Units of several MachineConfigs are merged field by field.
    fn add_unit(&mut self, name: &str, unit: &Value) {
        self.insert(format!("unit {name}"), &json!(true));
        for (field, value) in unit.as_object().into_iter().flatten() {
            match field.as_str() {
                "name" => {}
                "dropins" => self.add_list(&format!("unit {name}"), value, |contents, file, dropin| {
                    contents.add_value(format!("unit {name} {file}"), dropin);
                }),
                // This, too, is a statement about the unit.
                "enabled" | "mask" => self.insert(format!("unit {name} {field}"), value),
                field => self.add_value(format!("unit {name} {field}"), value),
            }
        }
    }

    /// Adds the items of a list by their names. What cannot be read counts as something that no node runs.
    fn add_list(&mut self, list: &str, items: &Value, mut add: impl FnMut(&mut Contents, &str, &Value)) {
        let Some(items) = items.as_array() else {
            return self.add_value(format!("{list} (unreadable)"), items);
        };
        let mut names: Vec<String> = Vec::new();
        for item in items {
            let name = ["path", "name", "device"].iter().find_map(|key| item[key].as_str());
            match name.filter(|name| !names.iter().any(|known| known == name)) {
                Some(name) => {
                    names.push(name.to_owned());
                    add(self, name, item);
                }
                None => self.insert(format!("{list} (unreadable)"), &json!(items)),
            }
        }
        if !names.is_empty() {
            self.orders.insert(list.to_owned(), names);
        }
    }

    fn append(&mut self, list: &'static str, items: &Value) {
        let texts = items.as_array().and_then(|items| items.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        match texts {
            Some(texts) if texts.is_empty() => {}
            Some(texts) => {
                self.appended.insert(list, texts.into_iter().map(str::to_owned).collect());
            }
            None => self.add_value(format!("{list} (unreadable)"), items),
        }
    }

    fn add_value(&mut self, name: String, value: &Value) {
        if let Some(value) = normalized(value) {
            self.insert(name, &value);
        }
    }

    fn insert(&mut self, name: String, value: &Value) {
        self.entries.insert(name, Digest::of(value));
    }
}

/// `file` for `files`.
fn singular(list: &str) -> String {
    match list.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => list.strip_suffix('s').unwrap_or(list).to_owned(),
    }
}

/// A map without one key.
fn without(map: &Value, key: &str) -> Value {
    let Some(fields) = map.as_object() else { return map.clone() };
    Value::Object(
        fields.iter().filter(|(name, _)| *name != key).map(|(name, value)| (name.clone(), value.clone())).collect(),
    )
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
        let Contents { entries, orders, appended } = Contents::of(&kind, &json!({"spec": spec})).unwrap();
        let entries = entries.into_keys();
        let orders = orders.into_iter().map(|(list, names)| format!("order of {list}: {}", names.join(" ")));
        let appended = appended.into_iter().map(|(list, items)| format!("{list}: {}", items.join(" ")));
        entries.chain(orders).chain(appended).collect::<Vec<_>>().join("\n")
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
            file /etc/a
            passwd
            unit w.service
            unit x.service
            unit x.service contents
            unit x.service enabled
            unit x.service y.conf
            order of directory: /var/b
            order of disk: /dev/sda
            order of file: /etc/a
            order of unit: x.service w.service
            order of unit x.service: y.conf
            extension: usbguard
            kernel argument: quiet psi=1"#]]
        .assert_eq(&names("MachineConfig", &spec));
        assert_eq!(names("MachineConfig", &json!({"kernelType": "realtime", "fips": true})), "fips\nkernelType");
    }

    #[test]
    fn an_empty_list_brings_nothing_in() {
        assert_eq!(names("MachineConfig", &json!({"kernelArguments": [], "extensions": []})), "");
    }

    #[test]
    fn a_file_that_replaces_another_one_is_the_same_whether_that_is_said_or_not() {
        let kind = Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
        let of = |file: Value| {
            let spec = json!({"config": {"storage": {"files": [file]}}});
            Contents::of(&kind, &json!({"spec": spec})).unwrap()
        };
        let unsaid = of(json!({"path": "/etc/a", "mode": 420}));
        assert_eq!(of(json!({"path": "/etc/a", "mode": 420, "overwrite": true})), unsaid);
        assert_ne!(of(json!({"path": "/etc/a", "mode": 420, "overwrite": false})), unsaid);
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
    fn what_cannot_be_read_counts_as_a_part_of_its_own() {
        let file = |path: &str| json!({"path": path, "mode": 1});
        for (spec, expected) in [
            (json!({"kernelArguments": "quiet"}), "kernel argument (unreadable)"),
            (json!({"kernelArguments": [1]}), "kernel argument (unreadable)"),
            (json!({"config": {"storage": {"files": "x"}}}), "file (unreadable)"),
            (json!({"config": {"storage": {"files": [{"mode": 1}]}}}), "file (unreadable)"),
            (
                json!({"config": {"storage": {"files": [file("/a"), file("/a")]}}}),
                "file (unreadable)\nfile /a\norder of file: /a",
            ),
            (json!({"config": {"systemd": {"other": 1}}}), "systemd"),
            (json!({"baseOSExtensionsContainerImage": "x", "new": {"a": 1}}), "baseOSExtensionsContainerImage\nnew"),
        ] {
            assert_eq!(names("MachineConfig", &spec), expected, "{spec}");
        }
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

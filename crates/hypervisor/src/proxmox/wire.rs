//! How Proxmox VE spells values: integers that come as texts, booleans that come as 0 and 1, lists and options inside of texts.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One line of `cluster/resources`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resource {
    /// `qemu`, `lxc`, `node`, `storage`, `pool`, `sdn`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "text")]
    pub(crate) vmid: String,
    #[serde(deserialize_with = "text")]
    pub(crate) name: String,
    #[serde(deserialize_with = "text")]
    pub(crate) node: String,
    #[serde(deserialize_with = "text")]
    pub(crate) storage: String,
    #[serde(deserialize_with = "text")]
    pub(crate) pool: String,
    #[serde(deserialize_with = "text")]
    pub(crate) status: String,
    #[serde(deserialize_with = "text")]
    pub(crate) tags: String,
    #[serde(deserialize_with = "text")]
    pub(crate) lock: String,
    #[serde(deserialize_with = "text")]
    pub(crate) plugintype: String,
    #[serde(deserialize_with = "flag")]
    pub(crate) template: bool,
    #[serde(deserialize_with = "flag")]
    pub(crate) shared: bool,
    #[serde(deserialize_with = "number")]
    pub(crate) maxcpu: u64,
    #[serde(deserialize_with = "number")]
    pub(crate) maxmem: u64,
    #[serde(deserialize_with = "number")]
    pub(crate) mem: u64,
    #[serde(deserialize_with = "number")]
    pub(crate) maxdisk: u64,
    #[serde(deserialize_with = "number")]
    pub(crate) disk: u64,
}

/// The configuration of a machine: every key with its text.
pub(crate) type Config = BTreeMap<String, Value>;

/// The text of a key.
pub(crate) fn key<'a>(config: &'a Config, key: &str) -> Option<&'a str> {
    config.get(key).and_then(Value::as_str)
}

/// The number of a key.
pub(crate) fn key_number(config: &Config, key: &str) -> Option<u64> {
    config.get(key).and_then(as_number)
}

pub(crate) fn as_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => {
            // A number of nodes with fractions of CPUs is one of statistics, and rounded down.
            number.as_u64().or_else(|| number.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(flag) => Some(u64::from(*flag)),
        _ => None,
    }
}

pub(crate) fn as_flag(value: &Value) -> bool {
    as_number(value).is_some_and(|number| number != 0)
}

pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(as_number(&Value::deserialize(deserializer)?).unwrap_or_default())
}

fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(as_flag(&Value::deserialize(deserializer)?))
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(as_text(&Value::deserialize(deserializer)?))
}

/// Tags in one text.
pub(crate) fn tags(text: &str) -> BTreeSet<String> {
    each_tag(text).map(str::to_owned).collect()
}

/// Whether a tag is among those in one text.
pub(crate) fn has_tag(text: &str, tag: &str) -> bool {
    each_tag(text).any(|found| found == tag)
}

fn each_tag(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', ',', ' ']).filter(|tag| !tag.is_empty())
}

/// Options such as `virtio=AA:BB,bridge=vmbr0`, in their order. An option without a name has its default one: `local:9/disk,size=1G`.
pub(crate) fn options(text: &str) -> Vec<(&str, &str)> {
    text.split(',')
        .filter(|option| !option.is_empty())
        .map(|option| option.split_once('=').unwrap_or(("", option)))
        .collect()
}

/// The value of an option.
pub(crate) fn option<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    options(text).into_iter().find(|(option, _)| *option == name).map(|(_, value)| value)
}

/// A size such as `32G`, `4096M`, `528K` or `1024`, in bytes.
pub(crate) fn bytes(size: &str) -> Option<u64> {
    let (digits, factor) = match size.char_indices().last()? {
        (end, 'K') => (&size[..end], 1 << 10),
        (end, 'M') => (&size[..end], 1 << 20),
        (end, 'G') => (&size[..end], 1 << 30),
        (end, 'T') => (&size[..end], 1_u64 << 40),
        _ => (size, 1),
    };
    match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(factor),
        Err(_) => {
            digits.parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| (number * factor as f64) as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Resource, bytes, has_tag, option, tags};

    #[test]
    fn numbers_as_texts_and_flags_as_numbers_are_read() {
        let line =
            r#"{"type":"qemu","vmid":"105","maxmem":"2147483648","maxcpu":2.5,"template":"1","name":null,"shared":0}"#;
        let line: Resource = serde_json::from_str(line).unwrap();
        assert_eq!(
            (line.vmid.as_str(), line.maxmem, line.maxcpu, line.template, line.shared),
            ("105", 1 << 31, 2, true, false)
        );
        let line: Resource = serde_json::from_str(r#"{"type":"qemu","vmid":105,"name":7}"#).unwrap();
        assert_eq!((line.vmid.as_str(), line.name.as_str()), ("105", "7"));
    }

    #[test]
    fn sizes_options_and_tags_are_read() {
        let sizes = ["32G", "512M", "528K", "2T", "1024", "1.5G", "x", "", "G"];
        let expected = [
            Some(32 << 30),
            Some(512 << 20),
            Some(528 << 10),
            Some(2 << 40),
            Some(1024),
            Some(3 << 29),
            None,
            None,
            None,
        ];
        assert_eq!(sizes.map(bytes), expected);
        assert_eq!(option("local:9/disk.qcow2,size=1G", "size"), Some("1G"));
        assert_eq!(option("local:9/disk.qcow2,size=1G", ""), Some("local:9/disk.qcow2"));
        assert_eq!(tags("b;a, c"), ["a", "b", "c"].map(str::to_owned).into());
        assert!(has_tag("b;a, c", "c") && !has_tag("b;a, c", "") && !has_tag("ab", "a"));
    }
}

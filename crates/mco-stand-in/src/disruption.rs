//! What an update does to a node: the difference of two configurations, and the node disruption policy.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What an update does to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disruption {
    /// Services are reloaded or restarted, or nothing at all.
    None,
    /// The node is cordoned and drained.
    Drain,
    /// It is cordoned, drained and restarted.
    Restart,
}

/// The documented policy of the operator: files, or folders with everything below, and their actions.
const FILES: [(&str, &str); 10] = [
    ("/etc/mco/internal-registry-pull-secret.json", "None"),
    ("/var/lib/kubelet/config.json", "None"),
    ("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", "Reload"),
    ("/etc/containers/policy.json", "Reload"),
    ("/etc/containers/registries.conf", "Special"),
    ("/etc/containers/registries.d", "Reload"),
    ("/etc/crio/policies", "Reload"),
    ("/etc/nmstate/openshift", "None"),
    ("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", "Restart"),
    ("/etc/kubernetes/credential-providers", "Restart"),
];

/// The parts of a config that cannot change on a running node.
const FIXED: [&str; 7] = ["disks", "filesystems", "raid", "luks", "directories", "links", "groups"];

/// What the change from one rendered MachineConfig to another does to a node, or why it cannot be applied.
///
/// The policy is the `spec.nodeDisruptionPolicy` of the `MachineConfiguration` named `cluster`, or null. It has precedence over the documented
/// one, and what neither of them names restarts the node.
pub fn disruption_between(old: &Value, new: &Value, policy: &Value) -> Result<Disruption, String> {
    let (old, new) = (&old["spec"], &new["spec"]);
    check_reconcilable(old, new)?;
    let beyond_files = ["kernelArguments", "extensions", "kernelType", "osImageURL", "baseOSExtensionsContainerImage"];
    if beyond_files.iter().any(|key| !is_same(&old[key], &new[key])) {
        return Ok(Disruption::Restart);
    }
    let files = changed(old, new, "/config/storage/files", "path");
    let units = changed(old, new, "/config/systemd/units", "name");
    let users = changed(old, new, "/config/passwd/users", "name");
    let files = files.iter().map(|path| of_file(path, policy));
    let units = units.iter().map(|unit| of_unit(unit, policy));
    let users = users.iter().map(|_| match policy["sshkey"]["actions"].as_array() {
        Some(actions) => of_actions(actions),
        None => Disruption::None,
    });
    Ok(files.chain(units).chain(users).max().unwrap_or(Disruption::None))
}

fn check_reconcilable(old: &Value, new: &Value) -> Result<(), String> {
    if (old["fips"] == true) != (new["fips"] == true) {
        return Err("detected change to FIPS flag; refusing to modify FIPS on a running cluster".into());
    }
    for section in FIXED {
        let of = |spec: &Value| {
            let parent = if section == "groups" { "passwd" } else { "storage" };
            spec["config"][parent][section].clone()
        };
        if !is_same(&of(old), &of(new)) {
            return Err(format!("ignition {section} section contains changes"));
        }
    }
    let others = changed(old, new, "/config/passwd/users", "name");
    match others.iter().find(|user| user.as_str() != "core") {
        Some(user) => Err(format!("ignition passwd user section contains unsupported changes: user {user}, not core")),
        None => Ok(()),
    }
}

/// Whether two values are equal, where an empty one is like none.
fn is_same(one: &Value, other: &Value) -> bool {
    let is_empty = |value: &Value| [&json!(null), &json!([]), &json!("")].contains(&value);
    one == other || is_empty(one) && is_empty(other)
}

/// The keys of the items that were added, changed or removed.
fn changed(old: &Value, new: &Value, pointer: &str, key: &str) -> Vec<String> {
    let items = |spec: &Value| -> BTreeMap<String, Value> {
        let list = spec.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
        list.into_iter().map(|item| (item[key].as_str().unwrap_or_default().to_owned(), item)).collect()
    };
    let (old, new) = (items(old), items(new));
    let mut keys: Vec<String> =
        old.keys().chain(new.keys()).filter(|key| old.get(*key) != new.get(*key)).cloned().collect();
    keys.sort();
    keys.dedup();
    keys
}

fn of_file(path: &str, policy: &Value) -> Disruption {
    let covers = |rule: &str| path.strip_prefix(rule).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let of_user = policy["files"].as_array().into_iter().flatten().filter_map(|rule| {
        let path = rule["path"].as_str().filter(|path| covers(path))?;
        Some((path.len(), of_actions(rule["actions"].as_array()?)))
    });
    let documented =
        FILES.iter().filter(|(rule, _)| covers(rule)).map(|(rule, action)| (rule.len(), of_action(action)));
    // The rule for the longest path wins, and for the same path the user's.
    let closest = documented.chain(of_user).max_by_key(|(length, _)| *length);
    closest.map_or(Disruption::Restart, |(_, disruption)| disruption)
}

fn of_unit(name: &str, policy: &Value) -> Disruption {
    let rules = policy["units"].as_array().into_iter().flatten();
    let rule = rules.filter(|rule| rule["name"] == name).find_map(|rule| rule["actions"].as_array());
    rule.map_or(Disruption::Restart, |actions| of_actions(actions))
}

fn of_actions(actions: &[Value]) -> Disruption {
    let all = actions.iter().map(|action| of_action(action["type"].as_str().unwrap_or_default()));
    all.max().unwrap_or(Disruption::None)
}

fn of_action(action: &str) -> Disruption {
    match action {
        "None" | "Reload" | "Restart" | "DaemonReload" => Disruption::None,
        "Drain" | "Special" => Disruption::Drain,
        _ => Disruption::Restart,
    }
}

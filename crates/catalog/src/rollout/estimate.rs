//! Compares what an object brings in with the rendered configuration of a pool.

use super::contents::Contents;
use super::disruption::DisruptionPolicy;
use crate::cluster::pool::Pool;
use change::restarts::NodeEffect;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A rendered configuration, as far as it is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    contents: Contents,
    /// When it was rendered.
    pub rendered_at: Option<Timestamp>,
}

impl Configuration {
    /// Reads a rendered MachineConfig.
    pub fn of(object: &Value) -> Configuration {
        let created = object["metadata"]["creationTimestamp"].as_str();
        Configuration {
            contents: Contents::of_rendered(object),
            rendered_at: created.and_then(|created| created.parse().ok()),
        }
    }
}

/// What a change of one object does to one pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolChange {
    /// The parts of the pool's configuration that become different.
    pub changed: Vec<String>,
    /// What that does to its nodes.
    pub effect: NodeEffect,
}

/// What a change of an object does to a pool whose wanted configuration is this one. `before` and `after` are what the object brings in,
/// nothing where the pool does not take it.
pub fn pool_change(
    configuration: &Configuration,
    pool: &Pool,
    name: &str,
    before: Option<&Contents>,
    after: Option<&Contents>,
    policy: &DisruptionPolicy,
) -> PoolChange {
    let nothing = Contents::default();
    let (running, before, after) = (&configuration.contents, before.unwrap_or(&nothing), after.unwrap_or(&nothing));
    let mut changed: BTreeSet<String> = BTreeSet::new();
    for (entry, value) in &after.entries {
        // What it brings in already is not changed now, whether nodes follow it or not.
        if before.entries.get(entry) != Some(value) && running.entries.get(entry) != Some(value) {
            changed.insert(entry.clone());
        }
    }
    for entry in before.entries.keys() {
        // What the pool does not run is not taken away from it. What it runs may be merged with the same part of another object.
        if !after.entries.contains_key(entry) && running.entries.contains_key(entry) {
            changed.insert(entry.clone());
        }
    }
    for (list, names) in &after.orders {
        let running = running.orders.get(list).map(Vec::as_slice).unwrap_or_default();
        if before.orders.get(list) != Some(names) && !is_in_order(names, running) {
            changed.insert(format!("order of {list}"));
        }
    }
    let is_rendered = pool.sources.iter().any(|source| source == name);
    let lists: BTreeSet<&&str> = before.appended.keys().chain(after.appended.keys()).collect();
    for list in lists {
        let items = |contents: &'_ Contents| contents.appended.get(*list).cloned().unwrap_or_default();
        let (running, before, after) = (items(running), items(before), items(after));
        // What is appended of an object that is not rendered yet is new, also where another object brings in the same.
        let runs =
            (after.is_empty() || (is_rendered && is_block(&after, &running))) && !takes_away(&before, &after, &running);
        if before != after && !runs {
            let different = after
                .iter()
                .filter(|item| !before.contains(item))
                .chain(before.iter().filter(|item| !after.contains(item)));
            let mut names: Vec<String> = different.map(|item| format!("{list} {item}")).collect();
            if names.is_empty() {
                names.push(format!("order of {list}"));
            }
            changed.extend(names);
        }
    }
    let effect = match changed.is_empty() {
        true => NodeEffect::None,
        false if changed.iter().any(|entry| policy.restarts_for(entry)) => NodeEffect::Restart,
        false => NodeEffect::Reload,
    };
    PoolChange { changed: changed.into_iter().collect(), effect }
}

/// Whether what a change leads to is what a pool runs already, given all other objects by name. What is appended is there in the order of
/// all objects, as far as the change touches it. Of an object that is created again, nothing else is left in the configuration.
pub(super) fn is_explained(
    configuration: &Configuration,
    name: &str,
    (before, after): (Option<&Contents>, &Contents),
    others: &BTreeMap<&str, &Contents>,
) -> bool {
    let mut all = others.clone();
    all.insert(name, after);
    let running = &configuration.contents;
    // Settings of the kubelet are a part of a file, and the images are always set.
    let is_made = |entry: &str| {
        entry.starts_with("kubelet ") || ["osImageURL", "baseOSExtensionsContainerImage", "kernelType"].contains(&entry)
    };
    let is_known = |entry: &String| is_made(entry) || all.values().any(|contents| contents.entries.contains_key(entry));
    let lists: BTreeSet<&&str> = running.appended.keys().chain(after.appended.keys()).collect();
    let is_touched =
        |list: &&&&str| before.and_then(|before| before.appended.get(***list)) != after.appended.get(***list);
    let is_appended = |list: &&str| {
        let items = all.values().flat_map(|contents| contents.appended.get(*list).into_iter().flatten());
        items.eq(running.appended.get(*list).into_iter().flatten())
    };
    (before.is_some() || running.entries.keys().all(is_known))
        && lists.iter().filter(is_touched).all(|list| is_appended(list))
}

/// Whether the names that are in a list have the same order there; what is new is a change of its own.
fn is_in_order(names: &[String], list: &[String]) -> bool {
    let mut rest = list.iter();
    names.iter().filter(|name| list.contains(name)).all(|name| rest.any(|other| other == name))
}

/// Whether a list contains these items one after the other.
fn is_block(items: &[String], list: &[String]) -> bool {
    list.windows(items.len().max(1)).any(|window| window == items)
}

/// Whether something that is running is in the list before and, as often, not after.
fn takes_away(before: &[String], after: &[String], running: &[String]) -> bool {
    let count = |list: &[String], item: &String| list.iter().filter(|other| *other == item).count();
    before.iter().any(|item| count(before, item) > count(after, item) && running.contains(item))
}

#[cfg(test)]
mod tests {
    use super::{Configuration, is_explained, pool_change};
    use crate::cluster::pool::Pool;
    use crate::rollout::{Contents, DisruptionPolicy};
    use change::Kind;
    use change::restarts::NodeEffect;
    use serde_json::{Value, json};

    fn machine_config(spec: &Value) -> Contents {
        let kind = Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
        Contents::of(&kind, &json!({"spec": spec})).unwrap()
    }

    fn file(path: &str, content: &str) -> Value {
        json!({"path": path, "mode": 420, "contents": {"source": format!("data:,{content}")}})
    }

    fn files(files: &[Value]) -> Value {
        json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": files}}})
    }

    #[test]
    fn a_change_is_judged_by_what_the_pool_runs_and_not_by_the_object() {
        let with = |spec: &Value| {
            let mut file = spec.clone();
            // A newer version of Ignition adds empty fields.
            file["config"]["storage"]["files"][0]["contents"]["compression"] = json!("");
            file["config"]["storage"]["files"][0]["user"] = json!({});
            Configuration::of(&json!({"spec": file}))
        };
        let (one, two) = (files(&[file("/etc/a", "1")]), files(&[file("/etc/a", "2")]));
        let running = with(&one);
        let (one, two) = (machine_config(&one), machine_config(&two));
        let both = machine_config(&files(&[file("/etc/a", "1"), file("/etc/b", "1")]));
        let pool = Pool::default();
        let policy = DisruptionPolicy::default();
        let changed = |before: Option<&Contents>, after: Option<&Contents>| {
            pool_change(&running, &pool, "ours", before, after, &policy).changed.join(", ")
        };
        assert_eq!(changed(None, Some(&one)), "", "another object brings it in already");
        assert_eq!(changed(None, Some(&two)), "file /etc/a");
        assert_eq!(changed(Some(&two), Some(&one)), "", "an edit that is not rendered yet is undone");
        assert_eq!(changed(Some(&one), Some(&two)), "file /etc/a");
        assert_eq!(changed(Some(&both), Some(&one)), "", "what nodes do not run is not taken away");
        assert_eq!(changed(Some(&one), Some(&both)), "file /etc/b");
        assert_eq!(changed(Some(&one), None), "file /etc/a", "it leaves the pool");
        assert_eq!(changed(Some(&two), None), "file /etc/a", "it may be merged with that of another object");
        let (foreign, edited) =
            (files(&[file("/etc/a", "1"), file("/etc/c", "1")]), files(&[file("/etc/a", "2"), file("/etc/c", "1")]));
        let (foreign, edited) = (machine_config(&foreign), machine_config(&edited));
        assert_eq!(changed(Some(&edited), Some(&foreign)), "", "what somebody else added is not our change");
    }

    #[test]
    fn a_kernel_argument_is_new_unless_the_object_is_rendered_already() {
        let spec = json!({"kernelArguments": ["quiet"]});
        let (running, ours) = (Configuration::of(&json!({"spec": spec})), machine_config(&spec));
        let change = |sources: &[&str]| {
            let pool = Pool { sources: sources.iter().map(|name| (*name).to_owned()).collect(), ..Pool::default() };
            pool_change(&running, &pool, "ours", None, Some(&ours), &DisruptionPolicy::default()).effect
        };
        assert_eq!(change(&["theirs"]), NodeEffect::Restart);
        assert_eq!(change(&["ours", "theirs"]), NodeEffect::None);
    }

    #[test]
    fn the_order_of_what_is_in_lists_counts() {
        let arguments = |list: &[&str]| machine_config(&json!({"kernelArguments": list}));
        let pool = Pool { sources: vec!["ours".to_owned()], ..Pool::default() };
        let policy = DisruptionPolicy::default();
        let check = |running: &Configuration, before: &Contents, after: &Contents| {
            pool_change(running, &pool, "ours", Some(before), Some(after), &policy).changed.join(", ")
        };
        let running = Configuration::of(&json!({"spec": {"kernelArguments": ["x", "a", "b", "y"]}}));
        for (before, after, expected) in [
            (&["c"][..], &["a", "b"][..], ""),
            (&["a", "b"], &["b", "a"], "order of kernel argument"),
            (&["b", "a"], &["a", "b"], ""),
            (&["a", "b"], &["a"], "kernel argument b"),
            (&["a", "a", "b"], &["a", "b"], "order of kernel argument"),
            (&["c", "c", "a"], &["a", "b"], ""),
            (&["a", "b", "c"], &["a", "b"], ""),
            (&["a", "b"], &["a", "b", "c"], "kernel argument c"),
            (&["a", "b"], &["a", "b"], ""),
            (&["c"], &["a", "y"], "kernel argument a, kernel argument c, kernel argument y"),
        ] {
            assert_eq!(check(&running, &arguments(before), &arguments(after)), expected, "{before:?} {after:?}");
        }
        let units = |names: &[&str]| {
            let units: Vec<Value> = names.iter().map(|name| json!({"name": name, "enabled": true})).collect();
            json!({"config": {"systemd": {"units": units}}})
        };
        let running = Configuration::of(&json!({"spec": units(&["a", "theirs", "b"])}));
        let (straight, reversed) = (machine_config(&units(&["a", "b"])), machine_config(&units(&["b", "a"])));
        assert_eq!(check(&running, &reversed, &straight), "");
        assert_eq!(check(&running, &straight, &reversed), "order of unit");
    }

    #[test]
    fn a_change_of_which_every_part_is_named_by_the_policy_restarts_nothing() {
        let policy =
            serde_json::from_value(json!({"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]})).unwrap();
        let effect = |spec: &Value| {
            let (running, pool) = (Configuration::default(), Pool::default());
            pool_change(&running, &pool, "ours", None, Some(&machine_config(spec)), &policy).effect
        };
        assert_eq!(effect(&files(&[file("/etc/a", "1")])), NodeEffect::Reload);
        assert_eq!(effect(&files(&[file("/etc/a", "1"), file("/etc/b", "1")])), NodeEffect::Restart);
        assert_eq!(effect(&files(&[])), NodeEffect::None);
    }

    #[test]
    fn the_settings_of_a_kubelet_config_are_found_in_the_kubelets_files() {
        let kind = Kind::new("machineconfiguration.openshift.io/v1", "KubeletConfig");
        let ours = |spec: &Value| Contents::of(&kind, &json!({"spec": spec})).unwrap();
        let running = Configuration::of(&json!({"spec": files(&[
            file("/etc/kubernetes/kubelet.conf", "maxPods:%20500%0AmemorySwap:%20{swapBehavior:%20LimitedSwap}%0Aother:%201"),
            file("/etc/node-sizing-enabled.env", "NODE_SIZING_ENABLED=true%0ASYSTEM_RESERVED_MEMORY=1Gi"),
        ])}));
        let change = |running: &Configuration, spec: &Value| {
            let pool = Pool::default();
            pool_change(running, &pool, "ours", None, Some(&ours(spec)), &DisruptionPolicy::default())
                .changed
                .join(", ")
        };
        let effect = |spec: &Value| change(&running, spec);
        let swap = json!({"memorySwap": {"swapBehavior": "LimitedSwap"}});
        assert_eq!(effect(&json!({"kubeletConfig": swap, "autoSizingReserved": true})), "");
        assert_eq!(
            effect(&json!({"kubeletConfig": {"maxPods": 250}, "autoSizingReserved": false})),
            "kubelet autoSizingReserved, kubelet maxPods"
        );
        assert_eq!(effect(&json!({"logLevel": 4})), "kubelet logLevel (not compared)");
        let fixed = Configuration::of(&json!({"spec": files(&[
            file("/etc/node-sizing-enabled.env", "NODE_SIZING_ENABLED=false%0ASYSTEM_RESERVED_MEMORY=1Gi"),
        ])}));
        assert_eq!(change(&fixed, &json!({"autoSizingReserved": false})), "");
        assert_eq!(change(&fixed, &json!({"autoSizingReserved": true})), "kubelet autoSizingReserved");
    }

    #[test]
    fn an_object_that_is_created_again_is_free_only_if_everything_else_is_from_known_objects() {
        let ours = machine_config(&files(&[file("/etc/a", "1")]));
        let theirs = machine_config(&files(&[file("/etc/b", "1")]));
        let others = [("theirs", &theirs)].into();
        let is_free = |before: Option<&Contents>, more: &Value| {
            let mut spec = files(&[file("/etc/a", "1"), file("/etc/b", "1")]);
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            is_explained(&Configuration::of(&json!({"spec": spec})), "ours", (before, &ours), &others)
        };
        assert!(is_free(None, &json!({})));
        assert!(is_free(None, &json!({"osImageURL": "registry/a", "kernelType": "realtime"})), "they are always set");
        assert!(!is_free(None, &json!({"fips": true})), "the object may have brought it in before");
        assert!(is_free(Some(&ours), &json!({"fips": true})), "what it brings in is known");
        let sized = files(&[
            file("/etc/a", "1"),
            file("/etc/b", "1"),
            file("/etc/node-sizing-enabled.env", "NODE_SIZING_ENABLED=true"),
        ]);
        let sizing = machine_config(&files(&[file("/etc/node-sizing-enabled.env", "NODE_SIZING_ENABLED=true")]));
        let others = [("theirs", &theirs), ("sizing", &sizing)].into();
        let configuration = Configuration::of(&json!({"spec": sized}));
        assert!(is_explained(&configuration, "ours", (None, &ours), &others), "a setting is a part of a file");
    }
}

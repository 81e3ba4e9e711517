//! Compares what an object brings in with the rendered configuration of a pool.

use super::contents::{APPENDED, Contents};
use super::disruption::DisruptionPolicy;
use crate::cluster::pool::Pool;
use change::Digest;
use change::restarts::NodeEffect;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

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
    let running = &configuration.contents.0;
    // What is appended of an object that is not rendered yet is new, also where another object brings in the same.
    let is_rendered = pool.sources.iter().any(|source| source == name);
    let is_new = |entry: &str| !is_rendered && APPENDED.iter().any(|prefix| entry.starts_with(prefix));
    // What it brings in already is not changed now, whether nodes follow it or not.
    let is_there = |entry: &String, value: &Digest| before.is_some_and(|before| before.0.get(entry) == Some(value));
    let mut changed: BTreeSet<&str> = BTreeSet::new();
    for (entry, value) in after.into_iter().flat_map(|contents| &contents.0) {
        if !is_there(entry, value) && (running.get(entry) != Some(value) || is_new(entry)) {
            changed.insert(entry);
        }
    }
    let stays = |entry: &String| after.is_some_and(|after| after.0.contains_key(entry));
    for (entry, value) in before.into_iter().flat_map(|contents| &contents.0) {
        // What the pool does not run is not taken away from it.
        if !stays(entry) && running.get(entry) == Some(value) {
            changed.insert(entry);
        }
    }
    let effect = match changed.is_empty() {
        true => NodeEffect::None,
        false if changed.iter().any(|entry| policy.restarts_for(entry)) => NodeEffect::Restart,
        false => NodeEffect::Reload,
    };
    PoolChange { changed: changed.into_iter().map(str::to_owned).collect(), effect }
}

#[cfg(test)]
mod tests {
    use super::{Configuration, pool_change};
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
        assert_eq!(changed(Some(&two), None), "");
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
        let effect = |spec: &Value| {
            let pool = Pool::default();
            pool_change(&running, &pool, "ours", None, Some(&ours(spec)), &DisruptionPolicy::default())
                .changed
                .join(", ")
        };
        let swap = json!({"memorySwap": {"swapBehavior": "LimitedSwap"}});
        assert_eq!(effect(&json!({"kubeletConfig": swap, "autoSizingReserved": true})), "");
        assert_eq!(
            effect(&json!({"kubeletConfig": {"maxPods": 250}, "autoSizingReserved": false})),
            "kubelet autoSizingReserved, kubelet maxPods"
        );
        assert_eq!(effect(&json!({"logLevel": 4})), "kubelet logLevel (not compared)");
    }
}

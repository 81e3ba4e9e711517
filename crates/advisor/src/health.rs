//! Whether an object that is as it should be has had its effect.

use crate::situation::Health;
use catalog::Pool;
use catalog::rollout::DisruptionPolicy;
use catalog::rollout::{Configuration, Contents, Contribution, pool_change};
use change::Key;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is said of an object whose operator has not looked at its present generation.
const UNSEEN: &str = "its operator has not looked at it yet";
/// The conditions that are true of an object which is ready.
const READY: [&str; 2] = ["Available", "Ready"];
/// The conditions that are true of an object which is on its way.
const MOVING: [&str; 2] = ["Progressing", "Pending"];
/// The condition that is true once the HyperConverged was reconciled.
const RECONCILED: &str = "ReconcileComplete";

/// Whether a condition, where it is true, says that something is wrong. Operators of OpenShift have one for each of their controllers.
fn is_bad(kind: &str) -> bool {
    kind == "Failed" || kind.ends_with("Degraded")
}

/// The health of an object by its own status: what its operator says about the present generation. `reports` says that it has an operator that
/// says something of each object.
pub fn of_object(object: &Value, reports: bool) -> Health {
    let (generation, status) = (object["metadata"]["generation"].as_i64(), &object["status"]);
    let list = |key: &str| status[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = list("conditions");
    let kind = |condition: &Value| condition["type"].as_str().unwrap_or_default().to_owned();
    let says = |fits: &dyn Fn(&str) -> bool, truth: &str| {
        let found = all.iter().find(|condition| fits(&kind(condition)) && condition["status"] == truth)?;
        let text = ["message", "reason"].iter().find_map(|key| found[*key].as_str().filter(|text| !text.is_empty()));
        let text = text.map(|text| format!(": {text}")).unwrap_or_default();
        Some(format!("{} is {truth}{text}", kind(found)))
    };
    let is_behind =
        |seen: &Value| seen["observedGeneration"].as_i64().zip(generation).is_some_and(|(seen, now)| seen < now);
    let counts = |kind: &str| is_bad(kind) || READY.contains(&kind) || MOVING.contains(&kind) || kind == RECONCILED;
    // Those of OpenShift write which Deployments they have made, and conditions only once something was wrong.
    let is_unseen = reports && all.is_empty() && list("generations").is_empty();
    if is_unseen || is_behind(status) || all.iter().any(|condition| counts(&kind(condition)) && is_behind(condition)) {
        return Health::Progressing(UNSEEN.to_owned());
    }
    if let Some(why) = says(&is_bad, "True") {
        return Health::Degraded(why);
    }
    // There may be several of a kind, with other reasons.
    let unready = READY.iter().find_map(|ready| {
        let is_it = |kind: &str| kind == *ready;
        says(&is_it, "False").filter(|_| says(&is_it, "True").is_none())
    });
    if let Some(why) = unready {
        return Health::Unready(why);
    }
    let is_moving = |kind: &str| MOVING.contains(&kind) && object["kind"] != "Deployment";
    let waits = says(&|kind| kind == RECONCILED, "False").or_else(|| says(&is_moving, "True"));
    match waits.or_else(|| says(&|kind| READY.contains(&kind), "Unknown")) {
        Some(why) => Health::Progressing(why),
        None => replicas(object),
    }
}

/// The health of what runs pods, as `kubectl rollout status` judges it: only pods of the present template count.
fn replicas(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |key: &str| status[key].as_i64().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    if !["Deployment", "StatefulSet", "DaemonSet"].contains(&kind) {
        return Health::Healthy;
    }
    if status["observedGeneration"].is_null() {
        return Health::Progressing(UNSEEN.to_owned());
    }
    let (wanted, updated, available) = match kind {
        "DaemonSet" => (count("desiredNumberScheduled"), count("updatedNumberScheduled"), count("numberAvailable")),
        // A StatefulSet says how many pods are ready also where it does not say how many are available.
        "StatefulSet" => (spec["replicas"].as_i64().unwrap_or(1), count("updatedReplicas"), count("readyReplicas")),
        _ => (spec["replicas"].as_i64().unwrap_or(1), count("updatedReplicas"), count("availableReplicas")),
    };
    // The rest of a partition keeps the former template on purpose.
    let partition = spec["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or_default();
    // Who deletes the pods of a former template by hand is not waited for.
    let is_by_hand = spec["updateStrategy"]["type"] == "OnDelete";
    if updated < wanted - partition && !is_by_hand {
        return Health::Progressing(format!("{updated} of {wanted} pods are updated"));
    }
    if kind == "Deployment" && count("replicas") > updated {
        let old = count("replicas") - updated;
        return Health::Progressing(format!("{old} pods of the former template are still there"));
    }
    match available < wanted {
        true => Health::Progressing(format!("{available} of {wanted} pods are available")),
        false => Health::Healthy,
    }
}

/// The health of an object that configures nodes: whether they run what it brings in. The error names rendered configurations to read first.
pub fn of_pools(
    key: &Key,
    contribution: &Contribution,
    pools: &BTreeMap<String, Pool>,
    configurations: &BTreeMap<String, Option<Configuration>>,
) -> Result<Health, BTreeSet<String>> {
    let change = catalog::rollout::Change { name: &key.name, before: Some(contribution), after: None };
    let concerned = change.pools(pools.values());
    let mut unread = BTreeSet::new();
    let (mut waiting, mut degraded) = (Vec::new(), Vec::new());
    for pool in concerned {
        match of_pool(key, contribution, pool, configurations) {
            Ok(Health::Healthy) => {}
            Ok(Health::Progressing(why) | Health::Unready(why)) => waiting.push(why),
            Ok(Health::Degraded(why)) => degraded.push(why),
            Err(configuration) => {
                unread.insert(configuration);
            }
        }
    }
    if !unread.is_empty() {
        return Err(unread);
    }
    Ok(match (degraded.is_empty(), waiting.is_empty()) {
        (false, _) => Health::Degraded(degraded.join("; ")),
        (true, false) => Health::Progressing(waiting.join("; ")),
        (true, true) => Health::Healthy,
    })
}

/// The health of an object that configured nodes and is gone: whether they run without it. The error names MachineConfigs to read first.
pub fn of_pools_without(
    key: &Key,
    pools: &BTreeMap<String, Pool>,
    sources: &BTreeMap<String, Option<Contents>>,
) -> Result<Health, BTreeSet<String>> {
    for pool in pools.values() {
        let Pool { name: pool_name, machine_count: all, updated_machine_count: updated, .. } = pool;
        let mut left = pool.sources.iter().filter(|source| match is_kubelet_config(key) {
            // Another KubeletConfig of the pool may have one, too; that of the deleted one is deleted first.
            true => is_made_of_kubelet_config(source) && !matches!(sources.get(*source), Some(Some(_))),
            false => **source == key.name,
        });
        if let Some(source) = left.next() {
            if is_kubelet_config(key) && !sources.contains_key(source) {
                return Err([source.clone()].into());
            }
            return Ok(Health::Progressing(format!(
                "pool {pool_name}: its configuration is not rendered without it yet"
            )));
        }
        // A pool that has rolled out what it wants does not follow this removal, whatever else is wrong with it.
        if pool.wanted_configuration == pool.running_configuration {
            continue;
        }
        if pool.paused {
            let why =
                format!("it is paused, so its nodes do not follow; resume it ({updated} of {all} nodes are updated)");
            return Ok(Health::Progressing(format!("pool {pool_name}: {why}")));
        }
        match pool.why_not_ready() {
            Some(why) if pool.degraded => return Ok(Health::Degraded(why)),
            Some(_) => {
                return Ok(Health::Progressing(format!("pool {pool_name}: {updated} of {all} nodes are updated")));
            }
            None => {}
        }
    }
    Ok(Health::Healthy)
}

/// Whether a pool that is not ready rolls out a change of this very object, which `before` is in it, so that `after` may be what repairs it.
/// The error names rendered configurations to read first.
pub fn may_repair(
    key: &Key,
    [before, after]: [&Contribution; 2],
    pool: &Pool,
    configurations: &BTreeMap<String, Option<Configuration>>,
) -> Result<bool, BTreeSet<String>> {
    if pool.wanted_configuration == pool.running_configuration || !is_source(key, pool) {
        return Ok(false);
    }
    let (Some(before), Some(after)) = (&before.contents, &after.contents) else {
        // Nobody can tell what rolls; to wait repairs no pool that is degraded.
        return Ok(pool.degraded);
    };
    let unread = [&pool.wanted_configuration, &pool.running_configuration];
    let unread: BTreeSet<String> =
        unread.into_iter().filter(|name| !configurations.contains_key(*name)).cloned().collect();
    if !unread.is_empty() {
        return Err(unread);
    }
    let is_in = |contents: &Contents, name: &str| is_in(key, contents, pool, name, configurations).unwrap_or_default();
    let is_coming = is_in(before, &pool.wanted_configuration) && !is_in(before, &pool.running_configuration);
    let is_going = is_in(after, &pool.running_configuration) && !is_in(after, &pool.wanted_configuration);
    Ok(is_coming || is_going)
}

/// Whether the wanted configuration of a pool is rendered from an object.
fn is_source(key: &Key, pool: &Pool) -> bool {
    pool.sources.iter().any(|source| match is_kubelet_config(key) {
        true => is_made_of_kubelet_config(source),
        false => *source == key.name,
    })
}

/// Whether all that an object brings in is in a rendered configuration. The error is that it has to be read first.
fn is_in(
    key: &Key,
    contents: &Contents,
    pool: &Pool,
    configuration: &str,
    configurations: &BTreeMap<String, Option<Configuration>>,
) -> Result<bool, String> {
    let Some(read) = configurations.get(configuration) else { return Err(configuration.to_owned()) };
    Ok(read.as_ref().is_some_and(|read| {
        let different = pool_change(read, pool, &key.name, None, Some(contents), &DisruptionPolicy::default()).changed;
        !different.iter().any(|part| is_compared(part))
    }))
}

/// Whether an object configures nodes, so that pools say how it is.
pub fn is_of_nodes(key: &Key) -> bool {
    key.kind.group == "machineconfiguration.openshift.io"
}

fn is_kubelet_config(key: &Key) -> bool {
    key.kind.kind == "KubeletConfig"
}

/// Whether the machine-config operator made this MachineConfig from a KubeletConfig.
pub fn is_made_of_kubelet_config(machine_config: &str) -> bool {
    machine_config.contains("-generated-kubelet")
}

/// Whether a part of a KubeletConfig can be compared with a rendered configuration: what it reserves for the system is rendered elsewhere.
fn is_compared(part: &str) -> bool {
    !part.ends_with("(not compared)") && !part.starts_with("kubelet systemReserved")
}

fn of_pool(
    key: &Key,
    contribution: &Contribution,
    pool: &Pool,
    configurations: &BTreeMap<String, Option<Configuration>>,
) -> Result<Health, String> {
    let Pool { name: pool_name, machine_count: all, updated_machine_count: updated, .. } = pool;
    let waiting = |what: &str| Ok(Health::Progressing(format!("pool {pool_name}: {what}")));
    let progress = format!("{updated} of {all} nodes are updated");
    // Before it is rendered, the pool still says that all nodes are up to date.
    let is_rendered = match &contribution.contents {
        Some(contents) if is_source(key, pool) => {
            is_in(key, contents, pool, &pool.wanted_configuration, configurations)?
        }
        Some(_) => false,
        None => is_source(key, pool),
    };
    if pool.degraded {
        let why = pool.why_not_ready().unwrap_or_default();
        return Ok(Health::Degraded(format!("{why}; {progress}")));
    }
    if !is_rendered {
        return waiting("its configuration is not rendered yet");
    }
    if pool.paused && pool.wanted_configuration != pool.running_configuration {
        return waiting(&format!("it is paused, so its nodes do not follow; resume it ({progress})"));
    }
    match pool.why_not_ready() {
        None => Ok(Health::Healthy),
        Some(_) if updated >= all => waiting("its nodes are about to follow"),
        Some(_) => waiting(&progress),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_object, of_pools, of_pools_without};
    use crate::situation::Health;
    use catalog::Pool;
    use catalog::rollout::{Configuration, Contents, Contribution};
    use change::{Key, Kind};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn key(kind: &str, name: &str) -> Key {
        let kind = Kind::new("machineconfiguration.openshift.io/v1", kind);
        Key { kind, namespace: String::new(), name: name.into() }
    }

    /// What is said of an object of generation 3 with this status.
    fn of_status(status: &Value, reports: bool) -> Health {
        of_object(&json!({"kind": "X", "metadata": {"generation": 3}, "status": status}), reports)
    }

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "message": "m"})
    }

    #[test]
    fn an_object_is_healthy_when_its_operator_says_so_about_the_present_generation() {
        let of = |status: Value| of_status(&status, false);
        assert_eq!(of(json!({})), Health::Healthy, "it has no operator");
        assert!(matches!(of(json!({"observedGeneration": 2})), Health::Progressing(_)));
        assert_eq!(
            of(json!({"observedGeneration": 3, "conditions": [condition("Available", "True")]})),
            Health::Healthy
        );
        for kind in ["Degraded", "TargetConfigControllerDegraded", "Failed"] {
            let found = of(json!({"conditions": [condition("Available", "False"), condition(kind, "True")]}));
            assert_eq!(found, Health::Degraded(format!("{kind} is True: m")));
        }
        for kind in ["Available", "Ready"] {
            let found = of(json!({"conditions": [condition(kind, "False")]}));
            assert_eq!(found, Health::Unready(format!("{kind} is False: m")));
        }
        for (kind, status) in
            [("Progressing", "True"), ("Pending", "True"), ("ReconcileComplete", "False"), ("Available", "Unknown")]
        {
            let expected = Health::Progressing(format!("{kind} is {status}: m"));
            assert_eq!(of(json!({"conditions": [condition(kind, status)]})), expected);
        }
    }

    #[test]
    fn an_object_whose_operator_reports_is_not_healthy_before_it_has() {
        let of = |status: Value| of_status(&status, true);
        let unseen = Health::Progressing("its operator has not looked at it yet".into());
        for status in
            [json!(null), json!({}), json!({"conditions": []}), json!({"readyReplicas": 0, "generations": []})]
        {
            assert_eq!(of(status.clone()), unseen, "{status}");
        }
        assert_eq!(of(json!({"conditions": [condition("Disabled", "False")]})), Health::Healthy);
        assert_eq!(of(json!({"generations": [{"group": "apps", "lastGeneration": 1}]})), Health::Healthy);
    }

    #[test]
    fn a_condition_about_an_earlier_generation_says_nothing() {
        let seen = |kind: &str, status: &str, generation: i64| json!({"type": kind, "status": status, "observedGeneration": generation});
        let of = |conditions: Value| of_status(&json!({"conditions": conditions}), false);
        let unseen = Health::Progressing("its operator has not looked at it yet".into());
        assert_eq!(of(json!([seen("Available", "True", 2)])), unseen);
        assert_eq!(of(json!([seen("Degraded", "True", 2)])), unseen);
        assert_eq!(of(json!([seen("Available", "True", 3), seen("Upgradeable", "True", 1)])), Health::Healthy);
        // LokiStack keeps former conditions of the same kind, with other reasons.
        let degraded = |reason: &str, status: &str| json!({"type": "Degraded", "status": status, "reason": reason});
        let former = json!([degraded("MissingObjectStorageSecret", "False"), degraded("InvalidTenants", "True")]);
        assert_eq!(of(former), Health::Degraded("Degraded is True: InvalidTenants".into()));
        let ready = json!([condition("Ready", "True"), condition("Ready", "False")]);
        assert_eq!(of(ready), Health::Healthy);
    }

    #[test]
    fn a_removal_waits_for_the_pools_that_follow_it_and_for_no_other() {
        let pool = |sources: &[&str], wanted: &str, degraded: bool| Pool {
            name: "worker".into(),
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            wanted_configuration: wanted.into(),
            running_configuration: "one".into(),
            machine_count: 2,
            updated_machine_count: 1,
            degraded,
            ..Pool::default()
        };
        let args = key("MachineConfig", "90-args");
        let of = |pool: Pool| of_pools_without(&args, &[("worker".to_owned(), pool)].into(), &BTreeMap::new()).unwrap();
        assert!(matches!(of(pool(&["90-args"], "one", false)), Health::Progressing(_)), "it is still in there");
        assert!(matches!(of(pool(&["other"], "two", false)), Health::Progressing(_)), "nodes follow");
        assert!(matches!(of(pool(&["other"], "two", true)), Health::Degraded(_)), "nodes cannot follow");
        assert_eq!(of(pool(&["other"], "one", true)), Health::Healthy, "it is degraded for another reason");
        let paused = Pool { paused: true, ..pool(&["other"], "two", false) };
        assert!(matches!(of(paused), Health::Progressing(why) if why.contains("resume it")), "nodes do not follow");
    }

    #[test]
    fn an_edited_kubelet_config_is_healthy_once_nodes_run_what_it_sets() {
        let kubelet_config = |pods: u32| json!({"spec": {"machineConfigPoolSelector": {"matchLabels": {"a": "b"}}, "kubeletConfig": {"maxPods": pods, "systemReserved": {"memory": "1Gi"}}, "logLevel": 2}});
        let key = key("KubeletConfig", "ours");
        let contribution = Contribution::of(&key.kind, &kubelet_config(500));
        let rendered = |pods: u32| {
            let content = format!("data:,%7B%22maxPods%22%3A{pods}%7D");
            let file = json!({"path": "/etc/kubernetes/kubelet.conf", "contents": {"source": content}});
            Some(Configuration::of(&json!({"spec": {"config": {"storage": {"files": [file]}}}})))
        };
        let pool = |updated: i64| Pool {
            name: "worker".into(),
            sources: vec!["00-worker".into(), "99-worker-generated-kubelet".into()],
            wanted_configuration: "rendered-1".into(),
            running_configuration: if updated == 2 { "rendered-1".into() } else { "rendered-0".into() },
            machine_count: 2,
            updated_machine_count: updated,
            is_observed: true,
            labels: [("a".to_owned(), "b".to_owned())].into(),
            ..Pool::default()
        };
        let of = |pool: Pool, configurations: &BTreeMap<String, Option<Configuration>>| {
            of_pools(&key, &contribution, &[("worker".to_owned(), pool)].into(), configurations)
        };
        assert_eq!(of(pool(2), &BTreeMap::new()), Err(["rendered-1".to_owned()].into()), "it has to be read");
        let (former, present) =
            ([("rendered-1".into(), rendered(250))].into(), [("rendered-1".into(), rendered(500))].into());
        assert!(
            matches!(of(pool(2), &former), Ok(Health::Progressing(_))),
            "the pool says that all is done, but not of this"
        );
        assert!(matches!(of(pool(1), &present), Ok(Health::Progressing(_))), "a node has to follow");
        assert_eq!(of(pool(2), &present), Ok(Health::Healthy));
    }

    #[test]
    fn a_deleted_kubelet_config_is_waited_for_until_its_machine_config_is_not_rendered_any_more() {
        let generated = "99-worker-generated-kubelet";
        let pool = |sources: &[&str]| Pool {
            name: "worker".into(),
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            wanted_configuration: "one".into(),
            running_configuration: "one".into(),
            ..Pool::default()
        };
        let of = |pool: Pool, read: Option<Option<Contents>>| {
            let sources = read.into_iter().map(|contents| (generated.to_owned(), contents)).collect();
            of_pools_without(&key("KubeletConfig", "ours"), &[("worker".to_owned(), pool)].into(), &sources)
        };
        assert_eq!(of(pool(&["00-worker", generated]), None), Err([generated.to_owned()].into()), "it has to be read");
        assert!(matches!(of(pool(&["00-worker", generated]), Some(None)), Ok(Health::Progressing(_))));
        let others = Some(Some(Contents::default()));
        assert_eq!(of(pool(&["00-worker", generated]), others), Ok(Health::Healthy), "another KubeletConfig made it");
        assert_eq!(of(pool(&["00-worker"]), None), Ok(Health::Healthy));
    }

    /// What is said of a workload with this spec and status, which its operator has looked at.
    fn of_workload(kind: &str, spec: &Value, status: &Value) -> Result<(), String> {
        let mut status = status.clone();
        status["observedGeneration"] = json!(3);
        match of_object(&json!({"kind": kind, "metadata": {"generation": 3}, "spec": spec, "status": status}), false) {
            Health::Healthy => Ok(()),
            Health::Progressing(why) | Health::Unready(why) | Health::Degraded(why) => Err(why),
        }
    }

    #[test]
    fn a_deployment_is_healthy_when_all_pods_of_its_present_template_are_available_and_no_others_are_left() {
        let of = |status: Value| of_workload("Deployment", &json!({"replicas": 2}), &status);
        let counts = |all: u8, ready: u8, updated: u8, available: u8| json!({"replicas": all, "readyReplicas": ready, "updatedReplicas": updated, "availableReplicas": available});
        assert_eq!(of(counts(2, 2, 2, 2)), Ok(()));
        assert_eq!(of(counts(2, 2, 0, 2)), Err("0 of 2 pods are updated".into()), "the ready ones are of the former");
        assert_eq!(of(counts(3, 3, 2, 3)), Err("1 pods of the former template are still there".into()));
        assert_eq!(of(counts(2, 2, 2, 1)), Err("1 of 2 pods are available".into()));
        assert_eq!(of(json!({})), Err("0 of 2 pods are updated".into()));
        let unseen = of_object(&json!({"kind": "Deployment", "spec": {"replicas": 0}, "status": {}}), false);
        assert_eq!(unseen, Health::Progressing("its operator has not looked at it yet".into()));
    }

    #[test]
    fn a_rollout_of_other_workloads_is_waited_for_too() {
        let daemons = |updated: u8, available: u8| {
            let status = json!({"desiredNumberScheduled": 2, "updatedNumberScheduled": updated, "numberReady": 2, "numberAvailable": available});
            of_workload("DaemonSet", &json!({}), &status)
        };
        assert_eq!(daemons(2, 2), Ok(()));
        assert_eq!(daemons(1, 2), Err("1 of 2 pods are updated".into()));
        assert_eq!(daemons(2, 1), Err("1 of 2 pods are available".into()));
        let set = |strategy: Value, updated: u8, ready: u8| {
            let status = json!({"updatedReplicas": updated, "readyReplicas": ready});
            of_workload("StatefulSet", &json!({"replicas": 3, "updateStrategy": strategy}), &status)
        };
        assert_eq!(set(json!({}), 3, 3), Ok(()));
        assert_eq!(set(json!({}), 2, 3), Err("2 of 3 pods are updated".into()));
        assert_eq!(set(json!({}), 3, 2), Err("2 of 3 pods are available".into()));
        assert_eq!(set(json!({"rollingUpdate": {"partition": 1}}), 2, 3), Ok(()), "one keeps the former template");
        assert_eq!(set(json!({"type": "OnDelete"}), 0, 3), Ok(()), "pods are deleted by hand");
    }
}

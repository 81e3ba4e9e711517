//! The life of a `HypervisorCluster`: whether it can be used, and whether its object may go.

use crate::conditions::{Wanted, merge, read, shown, wanted};
use crate::hypervisor::{Checked, Listed};
use crate::object::{Name, Object};
use crate::placement::{self, Promised};
use api::fleet::{
    AvailableResources, FailureClass, HypervisorClusterSpec, HypervisorClusterStatus, IN_USE_FINALIZER, OrphanPolicy,
    Overcommit, Provider, Quantity, SAME_HYPERVISOR,
};
use change::Now;
use std::collections::BTreeSet;
use std::time::Duration;

/// A hypervisor.
pub type Cluster = Object<HypervisorClusterSpec, HypervisorClusterStatus>;

/// Numbers that change all the time are published this often; everything else at once.
const REFRESH: Duration = Duration::from_secs(300);
/// A clock that is so far off makes tickets and times useless.
const CLOCK_SKEW: i64 = 300;
/// What follows the id of an orphan that has no record of its owner: it is named, and never destroyed.
pub const NO_RECORD: &str = " (no owner record)";
const NODES_ONLINE: &str = "NodesOnline";

/// What is done to the finalizer of an object that others use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    AsIs,
    /// It is added, before the object is used.
    Add,
    /// It is removed: nobody uses the object any more.
    Remove,
}

/// All that a decision about a hypervisor depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The object.
    pub cluster: &'a Cluster,
    /// The answer to the last check; nothing before the first.
    pub checked: Option<&'a Result<Checked, (FailureClass, String)>>,
    /// How often in a row the list has failed, and why.
    pub list_failures: (u32, Option<&'a str>),
    /// The last list.
    pub listed: Option<&'a Listed>,
    /// What is promised on nodes and storages.
    pub promised: &'a Promised,
    /// The claims that have a machine on it, or will.
    pub users: &'a BTreeSet<Name>,
    /// Machines of this installation that no claim refers to, also those that have lost their records.
    pub orphans: Vec<String>,
    /// The present moment.
    pub now: Now,
}

/// A decision about a hypervisor.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Whether machines may be created on it.
    pub is_ready: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
    /// What is done to its finalizer.
    pub keep: Keep,
    /// The status.
    pub status: HypervisorClusterStatus,
}

/// Decides about a hypervisor.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let Observed { cluster, users, now, .. } = observed;
    let (is_ready, reason, message) = health(observed);
    // Orphans that are to be destroyed need it as well.
    let swept: Vec<&str> =
        observed.orphans.iter().map(String::as_str).filter(|orphan| !orphan.ends_with(NO_RECORD)).collect();
    let is_sweeping = cluster.spec.orphans.policy == OrphanPolicy::Delete && !swept.is_empty();
    let is_unused = users.is_empty() && !is_sweeping;
    let keep = keep(cluster.deleting.is_some(), cluster.has_finalizer(IN_USE_FINALIZER), is_unused);
    let mut conditions = vec![wanted("Ready", is_ready, reason, message.clone())];
    if cluster.deleting.is_some() {
        let held = match is_sweeping && users.is_empty() {
            true => format!(
                "it is deleted when these orphans are destroyed: {}; to leave them alone, set spec.orphans.policy to Report",
                swept.join(", ")
            ),
            false => held_by(users),
        };
        conditions.push(wanted("InUse", !is_unused, if is_unused { "Unused" } else { "InUse" }, held));
    }
    let before = &cluster.status;
    match observed.listed {
        Some(listed) => conditions.push(nodes_online(cluster, listed)),
        // What an earlier process has seen stays until there is a list.
        None => conditions.extend(before.conditions.iter().find(|known| known.r#type == NODES_ONLINE).map(|known| {
            let (reason, message) = (known.reason.clone(), known.message.clone());
            Wanted { kind: NODES_ONLINE, status: known.status, reason, message }
        })),
    }
    let endpoint = match is_moved(cluster, users) {
        true => before.endpoint.clone(),
        false => Some(cluster.spec.endpoint.clone()),
    };
    let mut status = HypervisorClusterStatus {
        endpoint,
        observed_generation: Some(cluster.generation),
        version: match observed.checked {
            Some(Ok(checked)) => Some(checked.version.clone()),
            _ => before.version.clone(),
        },
        conditions: merge(conditions, &before.conditions, cluster.generation, now.wall),
        orphans: observed.orphans.clone(),
        ..before.clone()
    };
    if let Some(listed) = observed.listed {
        let online = listed.nodes.values().filter(|node| node.is_online).count();
        status.connected_nodes = i32::try_from(online).ok();
        let last = before.last_sync_time.as_ref().and_then(read);
        let is_old = last.is_none_or(|last| change::now::later(last, REFRESH) <= now.wall);
        if is_old || status != *before {
            status.machines = i32::try_from(users.len()).ok();
            status.available_resources = Some(available(observed, listed));
            status.last_sync_time = Some(shown(now.wall));
        }
    }
    Decision { is_ready: is_ready && cluster.deleting.is_none(), reason, message, keep, status }
}

/// Whether the address of a hypervisor was changed although it has machines, and nobody has said that it is the same hypervisor: what is
/// not found there is not gone.
pub fn is_moved(cluster: &Cluster, users: &BTreeSet<Name>) -> bool {
    let is_here = |endpoint: &String| endpoint.trim_end_matches('/') == cluster.spec.endpoint.trim_end_matches('/');
    // The machines of KubeVirt are in this cluster, whatever the endpoint says.
    cluster.spec.provider != Provider::Kubevirt
        && !users.is_empty()
        && cluster.status.endpoint.as_ref().is_some_and(|before| !is_here(before))
        && !cluster.annotations.get(SAME_HYPERVISOR).is_some_and(is_here)
}

fn health(observed: &Observed<'_>) -> (bool, &'static str, String) {
    if let Some(before) =
        observed.cluster.status.endpoint.as_ref().filter(|_| is_moved(observed.cluster, observed.users))
    {
        let message = format!(
            "the endpoint was {before} when {} machines were created; set it back until they are gone, or, if it is the same hypervisor, set \
             the annotation {SAME_HYPERVISOR} to the new endpoint",
            observed.users.len()
        );
        return (false, "EndpointChanged", message);
    }
    match (observed.checked, observed.list_failures) {
        (None, _) => (false, "Connecting", "the hypervisor was not asked yet".to_owned()),
        (Some(Err((FailureClass::Configuration, message))), _) => (false, "ConfigurationError", message.clone()),
        (Some(Err((_, message))), _) => (false, "ConnectionFailed", unreachable(message)),
        (Some(Ok(_)), (failures, Some(why))) if failures > 1 => (false, "ConnectionFailed", unreachable(why)),
        (Some(Ok(checked)), _) => {
            let problems = problems(checked);
            let Some(Problem { reason, remedy, .. }) = problems.first() else {
                return (true, "ConnectionSuccessful", format!("version {}", checked.version));
            };
            let alike = problems.iter().filter(|problem| problem.reason == *reason);
            let found: Vec<&str> = alike.map(|problem| problem.found.as_str()).collect();
            (false, reason, format!("{}; {remedy}", found.join(", ")))
        }
    }
}

fn unreachable(why: &str) -> String {
    format!(
        "{why}; check spec.endpoint, and that its port can be reached from the pods of the fleet (NetworkPolicy, firewall)"
    )
}

/// Whether the nodes that may be used answer. Those that do not keep no others from being used.
fn nodes_online(cluster: &Cluster, listed: &Listed) -> Wanted {
    let is_used = |name: &String| cluster.spec.nodes.is_empty() || cluster.spec.nodes.contains(name);
    let offline = listed.nodes.iter().filter(|(name, node)| !node.is_online && is_used(name));
    let offline: Vec<&str> = offline.map(|(name, _)| name.as_str()).collect();
    if offline.is_empty() {
        return wanted(NODES_ONLINE, true, "NodesOnline", "all nodes answer");
    }
    let message = format!(
        "nodes that do not answer: {}; no machine is created there, and nothing is known of those that are there until they are back: bring \
         them back, or take them out of spec.nodes once they have no machines",
        offline.join(", ")
    );
    wanted(NODES_ONLINE, false, "NodeOffline", message)
}

/// Something that keeps a hypervisor from being used although it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which, in one word.
    pub reason: &'static str,
    /// What is wrong.
    pub found: String,
    /// What to do.
    pub remedy: String,
}

/// All that keeps a hypervisor that answers from being used; the first one has to be solved first.
pub fn problems(checked: &Checked) -> Vec<Problem> {
    let mut all = Vec::new();
    let mut add = |reason, found: String, remedy: &str| all.push(Problem { reason, found, remedy: remedy.to_owned() });
    for missing in &checked.missing {
        add("MissingPrivileges", format!("missing privilege: {missing}"), "grant it to the user or the API token");
    }
    for unknown in &checked.unknown {
        add(
            "ConfigurationError",
            format!("the hypervisor has no {unknown}"),
            "correct the HypervisorCluster, or create it",
        );
    }
    if !checked.is_quorate {
        add("NoQuorum", "the hypervisor has no quorum, so that nothing can be changed".into(), "bring its nodes back");
    }
    if checked.clock_ahead.abs() > CLOCK_SKEW {
        let found = format!("the clocks differ by {} s", checked.clock_ahead);
        add("ClockSkew", found, "synchronise them with NTP");
    }
    all
}

fn available(observed: &Observed<'_>, listed: &Listed) -> AvailableResources {
    let overcommit = observed.cluster.spec.overcommit;
    let (mut cpu, mut memory, mut storage) = (0_i64, 0_u64, 0_u64);
    let is_used = |name: &String| observed.cluster.spec.nodes.is_empty() || observed.cluster.spec.nodes.contains(name);
    for (name, node) in listed.nodes.iter().filter(|(name, node)| node.is_online && is_used(name)) {
        let load = observed.promised.nodes.get(name).copied().unwrap_or_default();
        cpu += i64::from(node.cpus) * i64::from(overcommit.cpu_percent) / 100 - i64::from(load.cpus);
        memory = memory.saturating_add(placement::free_memory(node, load, overcommit));
    }
    let mut counted = BTreeSet::new();
    for ((node, name), state) in &listed.storages {
        let of = if state.is_shared { String::new() } else { node.clone() };
        if counted.insert((of, name)) {
            let whole = Overcommit { storage_percent: 100, ..overcommit };
            let (free, _) = placement::free_space((node, name), state, observed.promised, whole);
            storage = storage.saturating_add(free);
        }
    }
    let gib = |bytes: u64| Quantity(format!("{}Gi", bytes >> 30));
    AvailableResources { cpu: cpu.max(0), memory: gib(memory), storage: gib(storage) }
}

/// What to do about the finalizer of an object that others use.
pub fn keep(is_deleting: bool, has_finalizer: bool, is_unused: bool) -> Keep {
    match (is_deleting, has_finalizer) {
        (false, false) => Keep::Add,
        (true, true) if is_unused => Keep::Remove,
        _ => Keep::AsIs,
    }
}

/// Which claims keep an object.
pub fn held_by(users: &BTreeSet<Name>) -> String {
    if users.is_empty() {
        return "no claim uses it".to_owned();
    }
    format!("it is deleted when these claims are gone: {}", first(users))
}

/// The first few names, and how many more there are.
pub(crate) fn first(names: &BTreeSet<Name>) -> String {
    let first: Vec<String> = names.iter().take(5).map(ToString::to_string).collect();
    let more = names.len().saturating_sub(first.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Cluster, Decision, Keep, Observed, decide};
    use crate::hypervisor::{Checked, Listed, NodeState};
    use crate::object::{Name, Object};
    use crate::placement::Promised;
    use api::fleet::{FailureClass, HypervisorClusterStatus, Truth};
    use change::{Moment, Now};
    use jiff::Timestamp;
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};

    pub(crate) fn cluster() -> Cluster {
        let spec = json!({"provider": "proxmox", "endpoint": "https://pve:8006"});
        Object {
            name: Name::new("ci", "pve"),
            uid: "c".into(),
            version: "1".into(),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            finalizers: vec![api::fleet::IN_USE_FINALIZER.into()],
            annotations: BTreeMap::new(),
            spec: serde_json::from_value(spec).unwrap(),
            status: HypervisorClusterStatus::default(),
        }
    }

    fn good() -> Checked {
        Checked { version: "9.2".into(), is_quorate: true, ..Checked::default() }
    }

    fn decided(
        cluster: &Cluster,
        checked: &Result<Checked, (FailureClass, String)>,
        failures: u32,
        users: &[&str],
        second: i64,
    ) -> Decision {
        let mut listed = Listed::default();
        let node = NodeState { is_online: true, cpus: 8, memory: 64 << 30, memory_used: 0 };
        listed.nodes.insert("a".into(), node);
        decide(&Observed {
            cluster,
            checked: Some(checked),
            list_failures: (failures, Some("connection refused")),
            listed: Some(&listed),
            promised: &Promised::default(),
            users: &users.iter().map(|user| Name::new("ci", user)).collect::<BTreeSet<_>>(),
            orphans: Vec::new(),
            now: Now { wall: Timestamp::from_second(second).unwrap(), monotonic: Moment::default() },
        })
    }

    /// P1: each trouble is one condition with its remedy, and blocks provisioning.
    #[test]
    fn every_trouble_has_its_reason_and_its_remedy() {
        let wrong = |text: &str| Err((FailureClass::Configuration, text.to_owned()));
        for (checked, failures, reason, part) in [
            (Ok(good()), 0, "ConnectionSuccessful", "9.2"),
            (Ok(good()), 1, "ConnectionSuccessful", "9.2"),
            (Ok(good()), 2, "ConnectionFailed", "connection refused; check spec.endpoint"),
            (wrong("wrong token; create another"), 0, "ConfigurationError", "create another"),
            (Err((FailureClass::Transient, "no route".into())), 0, "ConnectionFailed", "no route; check spec.endpoint"),
            (Ok(Checked { missing: vec!["VM.Clone on /vms".into()], ..good() }), 0, "MissingPrivileges", "grant"),
            (Ok(Checked { unknown: vec!["node c".into()], ..good() }), 0, "ConfigurationError", "node c; correct"),
            (Ok(Checked { is_quorate: false, ..good() }), 0, "NoQuorum", "bring its nodes back"),
            (Ok(Checked { clock_ahead: -400, ..good() }), 0, "ClockSkew", "NTP"),
        ] {
            let decision = decided(&cluster(), &checked, failures, &[], 1_000);
            assert_eq!(decision.is_ready, reason == "ConnectionSuccessful", "{reason}");
            assert_eq!(decision.reason, reason);
            assert!(decision.message.contains(part), "{}", decision.message);
            let condition = &decision.status.conditions[0];
            assert_eq!((condition.r#type.as_str(), condition.reason.as_str()), ("Ready", reason));
        }
    }

    #[test]
    fn nodes_that_do_not_answer_are_named_and_keep_no_others_from_being_used() {
        let mut cluster = cluster();
        let state = |is_online| NodeState { is_online, cpus: 8, memory: 64 << 30, memory_used: 0 };
        let nodes = [("a", true), ("b", false), ("c", false)].map(|(name, up)| (name.to_owned(), state(up))).into();
        let listed = Listed { nodes, ..Listed::default() };
        let said = |cluster: &Cluster, listed: Option<&Listed>| {
            let observed = Observed {
                cluster,
                checked: Some(&Ok(good())),
                list_failures: (0, None),
                listed,
                promised: &Promised::default(),
                users: &BTreeSet::new(),
                orphans: Vec::new(),
                now: Now { wall: Timestamp::UNIX_EPOCH, monotonic: Moment::default() },
            };
            let decision = decide(&observed);
            assert!(decision.is_ready);
            decision.status
        };
        let status = said(&cluster, Some(&listed));
        let condition = status.conditions.iter().find(|found| found.r#type == "NodesOnline").unwrap();
        assert_eq!((condition.status, condition.reason.as_str()), (Truth::False, "NodeOffline"));
        assert!(condition.message.starts_with("nodes that do not answer: b, c;"), "{}", condition.message);
        assert!(condition.message.contains("bring them back"), "{}", condition.message);
        let known = status.conditions.clone();
        cluster.status = status;
        assert_eq!(said(&cluster, None).conditions, known, "it stays after a restart");
        cluster.spec.nodes = vec!["a".into()];
        let condition = said(&cluster, Some(&listed)).conditions.pop().unwrap();
        assert_eq!((condition.r#type.as_str(), condition.status), ("NodesOnline", Truth::True), "only a is used");
    }

    #[test]
    fn a_cluster_in_use_is_kept_and_says_by_whom() {
        let mut cluster = cluster();
        cluster.deleting = Some(Timestamp::UNIX_EPOCH);
        let used = decided(&cluster, &Ok(good()), 0, &["one", "two"], 1_000);
        let condition = &used.status.conditions[1];
        assert_eq!((used.keep, used.is_ready, condition.r#type.as_str()), (Keep::AsIs, false, "InUse"));
        assert!(condition.message.contains("ci/one, ci/two"), "{}", condition.message);
        assert_eq!(decided(&cluster, &Ok(good()), 0, &[], 1_000).keep, Keep::Remove);
    }

    #[test]
    fn a_changed_endpoint_is_believed_only_without_machines_or_when_a_person_says_so() {
        let mut cluster = cluster();
        cluster.status = decided(&cluster, &Ok(good()), 0, &["one"], 1_000).status;
        assert_eq!(cluster.status.endpoint.as_deref(), Some("https://pve:8006"));
        cluster.spec.endpoint = "https://other:8006".into();
        let moved = decided(&cluster, &Ok(good()), 0, &["one"], 1_001);
        assert_eq!((moved.is_ready, moved.reason), (false, "EndpointChanged"));
        assert!(moved.message.contains("was https://pve:8006"), "{}", moved.message);
        assert_eq!(moved.status.endpoint.as_deref(), Some("https://pve:8006"), "it stays until it is resolved");
        assert!(decided(&cluster, &Ok(good()), 0, &[], 1_001).is_ready);
        let annotate = |value: &str| [(api::fleet::SAME_HYPERVISOR.to_owned(), value.to_owned())].into();
        cluster.annotations = annotate("https://another:8006");
        assert!(!decided(&cluster, &Ok(good()), 0, &["one"], 1_002).is_ready, "it was said of another endpoint");
        cluster.annotations = annotate("https://other:8006");
        let same = decided(&cluster, &Ok(good()), 0, &["one"], 1_002);
        assert_eq!((same.is_ready, same.status.endpoint.as_deref()), (true, Some("https://other:8006")));
    }

    #[test]
    fn a_status_is_written_again_only_when_something_changes_or_after_minutes() {
        let mut cluster = cluster();
        cluster.status = decided(&cluster, &Ok(good()), 0, &[], 1_000).status;
        assert_eq!(cluster.status.connected_nodes, Some(1));
        assert_eq!(decided(&cluster, &Ok(good()), 0, &["one"], 1_200).status, cluster.status);
        let later = decided(&cluster, &Ok(good()), 0, &["one"], 1_300).status;
        assert_eq!((later.machines, later == cluster.status), (Some(1), false));
    }
}

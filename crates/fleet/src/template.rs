//! The life of a `HypervisorMachineTemplate`: whether machines can be made from it, and whether its object may go.

use crate::blueprint;
use crate::cloud_init;
use crate::cluster::{Cluster, Keep, first, held_by, keep};
use crate::conditions::{merge, shown, wanted};
use crate::hypervisor::{Listed, MachineId, Template as Found, TemplateRef};
use crate::object::{Name, Object};
use crate::placement;
use api::fleet::{
    FailureClass, HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus, IN_USE_FINALIZER, Provider,
    SeedDelivery,
};
use change::Now;
use std::collections::BTreeSet;

/// A template.
pub type Template = Object<HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus>;

/// The answer to the last look-up; a failure that may pass does not replace one.
pub type LookedUp = Result<Vec<Found>, (FailureClass, String)>;

/// All that a decision about a template depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The object.
    pub template: &'a Template,
    /// Its hypervisor and whether that can be used; nothing if there is none.
    pub cluster: Option<(&'a Cluster, bool)>,
    /// What the hypervisor has.
    pub found: Option<&'a LookedUp>,
    /// The last list of the hypervisor.
    pub listed: Option<&'a Listed>,
    /// The claims that use it.
    pub users: &'a BTreeSet<Name>,
    /// The pools that name it.
    pub pools: &'a BTreeSet<Name>,
    /// The present moment.
    pub now: Now,
}

/// A decision about a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Whether machines can be made from it.
    pub is_valid: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
    /// What is done to its finalizer.
    pub keep: Keep,
    /// The status.
    pub status: HypervisorMachineTemplateStatus,
}

/// How the template is named on the hypervisor.
pub fn reference(spec: &HypervisorMachineTemplateSpec) -> Option<TemplateRef> {
    if let Some(kubevirt) = &spec.template.kubevirt {
        return Some(TemplateRef::Name(kubevirt.name.clone()));
    }
    let proxmox = spec.template.proxmox.as_ref()?;
    let id = proxmox.template_id.map(|id| TemplateRef::Id(MachineId(id.to_string())));
    let name = proxmox.name.clone().map(TemplateRef::Name);
    id.or(name).or_else(|| proxmox.tag.clone().map(TemplateRef::Tag))
}

/// Decides about a template.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let Observed { template, users, pools, now, .. } = observed;
    let before = &template.status;
    let is_unused = users.is_empty() && pools.is_empty();
    let keep = keep(template.deleting.is_some(), template.has_finalizer(IN_USE_FINALIZER), is_unused);
    let (is_valid, reason, message) = validate(observed);
    let mut conditions = vec![wanted("TemplateValid", is_valid, reason, message.clone())];
    if template.deleting.is_some() {
        let word = if is_unused { "Unused" } else { "InUse" };
        let of_pools = match pools.is_empty() {
            true => String::new(),
            false => format!("; and when no RunnerPool names it: {}", first(pools)),
        };
        conditions.push(wanted("InUse", !is_unused, word, held_by(users) + &of_pools));
    }
    let resolved = match observed.found {
        Some(Ok(found)) => found.first().map(|found| format!("{} ({})", found.name, found.id.0)),
        _ => before.resolved_template.clone(),
    };
    let mut status = HypervisorMachineTemplateStatus {
        observed_generation: Some(template.generation),
        template_available: Some(is_valid),
        resolved_template: resolved,
        validation_status: Some(message.clone()),
        conditions: merge(conditions, &before.conditions, template.generation, now.wall),
        ..before.clone()
    };
    if status != *before {
        status.last_validated = Some(shown(now.wall));
    }
    Decision { is_valid: is_valid && template.deleting.is_none(), reason, message, keep, status }
}

/// Whether templates of a namespace may use a hypervisor of another one, which allows these.
pub fn may_use(of_cluster: &str, allowed: &[String], namespace: &str) -> bool {
    of_cluster == namespace || allowed.iter().any(|allowed| allowed == namespace || allowed == "*")
}

fn validate(observed: &Observed<'_>) -> (bool, &'static str, String) {
    let spec = &observed.template.spec;
    let Some((cluster, is_ready)) = observed.cluster else {
        let message = format!("there is no HypervisorCluster {}", spec.hypervisor_cluster_ref.name);
        return (false, "ClusterNotFound", message);
    };
    let namespace = &observed.template.name.namespace;
    if !may_use(&cluster.name.namespace, &cluster.spec.allowed_namespaces, namespace) {
        let message = format!(
            "the HypervisorCluster {} may not be used from here; add the namespace {namespace} to its spec.allowedNamespaces",
            cluster.name
        );
        return (false, "NamespaceNotAllowed", message);
    }
    let failed = |message: String| (false, "ValidationFailed", message);
    if spec.template.kubevirt.is_some() != (cluster.spec.provider == Provider::Kubevirt) {
        return failed(format!("spec.template is not for the provider of {}", cluster.name.name));
    }
    if let Some(what) = unsupported(spec) {
        return failed(format!("KubeVirt machines have no {what}: leave it out, or make it part of the template"));
    }
    if let Err(why) = cloud_init::seed(spec.cloud_init.as_ref(), &spec.network, "name", "uid") {
        return failed(why);
    }
    if let Err(why) = cloud_init::check_delivery(spec) {
        return failed(why);
    }
    let found = match observed.found {
        Some(Ok(found)) => found,
        Some(Err((FailureClass::Configuration | FailureClass::Permanent, message))) => {
            return (false, "TemplateNotFound", message.clone());
        }
        Some(Err(_)) | None if is_ready => {
            return (false, "Validating", "the hypervisor is asked for the template".into());
        }
        Some(Err(_)) | None => {
            let message = format!("the HypervisorCluster {} is not ready", cluster.name.name);
            return (false, "ClusterNotReady", message);
        }
    };
    let Some(first) = found.first() else {
        return (false, "TemplateNotFound", "the hypervisor has no such template".into());
    };
    let need = match blueprint::need(spec, &cluster.spec, first) {
        Ok(need) => need,
        Err(why) => return failed(why),
    };
    if need.must_link && !first.can_link {
        let storage = &first.storage;
        return failed(format!(
            "the storage {storage} makes no linked clones; remove linkedClone, or move the template"
        ));
    }
    if cloud_init::delivery(spec) == Some(SeedDelivery::GuestAgent)
        && let Some(silent) = found.iter().find(|found| !found.has_agent)
    {
        return failed(format!(
            "cloudInit.delivery is GuestAgent, and the guest agent of template {0} is switched off: qm set {0} --agent enabled=1",
            silent.id.0
        ));
    }
    if let Some(why) = observed.listed.and_then(|listed| too_large(&need, cluster, listed)) {
        return failed(why);
    }
    let nodes: Vec<&str> = found.iter().map(|found| found.node.as_str()).collect();
    (true, "ValidationSucceeded", format!("template {} on {}", first.name, nodes.join(", ")))
}

/// What a template for KubeVirt asks for and cannot get.
fn unsupported(spec: &HypervisorMachineTemplateSpec) -> Option<&'static str> {
    spec.template.kubevirt.as_ref()?;
    let (network, cloud_init) = (&spec.network, spec.cloud_init.as_ref());
    match () {
        () if spec.resources.disk.is_some() => Some("resources.disk"),
        () if network.vlan.is_some() => Some("network.vlan"),
        () if cloud_init.is_some_and(|cloud_init| cloud_init.meta_data.is_some()) => Some("cloudInit.metaData"),
        () => None,
    }
}

/// What no node of the hypervisor can give, also if it is empty.
fn too_large(need: &placement::Need, cluster: &Cluster, listed: &Listed) -> Option<String> {
    let (nodes, overcommit) = (&cluster.spec.nodes, cluster.spec.overcommit);
    let is_used = |name: &String| nodes.is_empty() || nodes.contains(name);
    let used = || listed.nodes.iter().filter(|(name, _)| is_used(name)).map(|(_, node)| node);
    let cpus = used().map(|node| node.cpus).max()?;
    if need.cpus > cpus {
        return Some(format!("resources.cpu is {}, and the largest node has {cpus} CPUs", need.cpus));
    }
    let memory = placement::percent(used().map(|node| node.memory).max()?, overcommit.memory_percent);
    if need.memory > memory {
        let (wanted, there) = (placement::shown(need.memory), placement::shown(memory));
        return Some(format!("resources.memory is {wanted}, and the largest node gives {there}"));
    }
    let storage = need.storage.as_ref()?;
    let of = listed.storages.iter().filter(|((node, name), _)| name == storage && is_used(node));
    let space = placement::percent(of.map(|(_, state)| state.bytes).max()?, overcommit.storage_percent);
    let (wanted, there) = (placement::shown(need.disk), placement::shown(space));
    (need.disk > space).then(|| format!("resources.disk is {wanted}, and the storage {storage} gives {there}"))
}

#[cfg(test)]
mod tests {
    use super::{Observed, Template, decide, reference};
    use crate::cluster::{Cluster, Keep};
    use crate::hypervisor::{Listed, MachineId, NodeState, StorageState, Template as Found, TemplateRef};
    use crate::object::{Name, Object};
    use api::fleet::FailureClass;
    use change::{Moment, Now};
    use jiff::Timestamp;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn object<S: DeserializeOwned, T: Default>(name: &str, spec: Value) -> Object<S, T> {
        Object {
            name: Name::new("ci", name),
            uid: name.into(),
            version: "1".into(),
            generation: 1,
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            finalizers: vec![api::fleet::IN_USE_FINALIZER.into()],
            annotations: std::collections::BTreeMap::new(),
            spec: serde_json::from_value(spec).unwrap(),
            status: T::default(),
        }
    }

    fn template(source: &Value, disk: &str) -> Template {
        let spec = json!({
            "hypervisorClusterRef": {"name": "pve"},
            "template": source,
            "resources": {"cpu": 2, "memory": "4Gi", "disk": disk},
        });
        object("small", spec)
    }

    fn found() -> Found {
        Found {
            id: MachineId("900".into()),
            name: "base".into(),
            node: "a".into(),
            storage: "ceph".into(),
            others: Default::default(),
            is_shared: true,
            can_link: false,
            disk: "scsi0".into(),
            disk_bytes: 20 << 30,
            has_agent: true,
        }
    }

    /// P4.
    #[test]
    fn an_id_a_name_and_a_tag_name_a_template() {
        let of = |source: Value| reference(&template(&json!({"proxmox": source}), "20Gi").spec);
        assert_eq!(of(json!({"templateId": 900})), Some(TemplateRef::Id(MachineId("900".into()))));
        assert_eq!(of(json!({"name": "base"})), Some(TemplateRef::Name("base".into())));
        assert_eq!(of(json!({"tag": "base"})), Some(TemplateRef::Tag("base".into())));
    }

    /// P3 and P25: a template is checked against its hypervisor, and follows what that has.
    #[test]
    fn a_template_is_valid_only_while_its_hypervisor_has_it() {
        let cluster: Cluster = object("pve", json!({"provider": "proxmox", "endpoint": "https://pve:8006"}));
        let tag = || json!({"proxmox": {"tag": "base"}});
        let missing = || Some(Err((FailureClass::Configuration, "no template has the tag base".to_owned())));
        let cases = [
            (template(&tag(), "20Gi"), true, Some(Ok(vec![found()])), "ValidationSucceeded"),
            (template(&tag(), "20Gi"), false, Some(Ok(vec![found()])), "ClusterNotFound"),
            (template(&tag(), "20Gi"), true, missing(), "TemplateNotFound"),
            (template(&tag(), "20Gi"), true, None, "Validating"),
            (template(&tag(), "10Gi"), true, Some(Ok(vec![found()])), "ValidationFailed"),
            (template(&json!({"kubevirt": {"name": "x"}}), "20Gi"), true, Some(Ok(vec![found()])), "ValidationFailed"),
            (
                template(&json!({"proxmox": {"tag": "b", "linkedClone": true}}), "20Gi"),
                true,
                Some(Ok(vec![found()])),
                "ValidationFailed",
            ),
        ];
        for (template, has_cluster, found, reason) in cases {
            let now = Now { wall: Timestamp::UNIX_EPOCH, monotonic: Moment::default() };
            let decision = decide(&Observed {
                template: &template,
                cluster: has_cluster.then_some((&cluster, true)),
                found: found.as_ref(),
                listed: Some(&Listed::default()),
                users: &BTreeSet::new(),
                pools: &BTreeSet::new(),
                now,
            });
            assert_eq!((decision.reason, decision.keep), (reason, Keep::AsIs), "{}", decision.message);
            assert_eq!(decision.status.template_available, Some(reason == "ValidationSucceeded"));
        }
    }

    fn refused(spec: &Value, provider: &str) -> String {
        let spec_of_cluster = json!({"provider": provider, "endpoint": "https://pve:8006", "nodes": ["a"]});
        let cluster: Cluster = object("pve", spec_of_cluster);
        let mut listed = Listed::default();
        for (name, cpus) in [("a", 8), ("b", 64)] {
            let memory = 32 << 30;
            let node = NodeState { is_online: true, cpus, memory, memory_used: 0 };
            listed.nodes.insert(name.into(), node);
            let storage = StorageState { bytes: 100 << 30, used: 0, is_shared: true };
            listed.storages.insert((name.into(), "ceph".into()), storage);
        }
        let mut spec = spec.clone();
        spec["hypervisorClusterRef"] = json!({"name": "pve"});
        let decision = decide(&Observed {
            template: &object("small", spec),
            cluster: Some((&cluster, true)),
            found: Some(&Ok(vec![found()])),
            listed: Some(&listed),
            users: &BTreeSet::new(),
            pools: &BTreeSet::new(),
            now: Now { wall: Timestamp::UNIX_EPOCH, monotonic: Moment::default() },
        });
        decision.message
    }

    /// P3: what no node that may be used can give is said before a machine is tried.
    #[test]
    fn a_template_that_is_larger_than_any_node_is_refused() {
        let of = |resources: Value| {
            refused(&json!({"template": {"proxmox": {"tag": "base"}}, "resources": resources}), "proxmox")
        };
        assert_eq!(of(json!({"cpu": 8, "memory": "32Gi"})), "template base on a");
        assert_eq!(of(json!({"cpu": 9, "memory": "4Gi"})), "resources.cpu is 9, and the largest node has 8 CPUs");
        assert_eq!(
            of(json!({"cpu": 8, "memory": "33Gi"})),
            "resources.memory is 33 GiB, and the largest node gives 32 GiB"
        );
        assert_eq!(
            of(json!({"cpu": 8, "memory": "4Gi", "disk": "200Gi"})),
            "resources.disk is 200 GiB, and the storage ceph gives 100 GiB"
        );
    }

    #[test]
    fn what_machines_of_kubevirt_cannot_have_is_refused() {
        let of = |field: &str, value: Value| {
            let mut spec =
                json!({"template": {"kubevirt": {"name": "base"}}, "resources": {"cpu": 1, "memory": "1Gi"}});
            spec[field] = value;
            refused(&spec, "kubevirt")
        };
        let disk = json!({"cpu": 1, "memory": "1Gi", "disk": "30Gi"});
        let network = json!({"bridge": "lan", "vlan": 7});
        for (field, value, what) in [
            ("resources", disk, "resources.disk"),
            ("network", network, "network.vlan"),
            ("cloudInit", json!({"metaData": "a: b"}), "cloudInit.metaData"),
        ] {
            let message = of(field, value);
            assert!(message.starts_with(&format!("KubeVirt machines have no {what}: ")), "{message}");
        }
    }

    #[test]
    fn a_template_of_another_namespace_needs_the_consent_of_the_hypervisor() {
        let mut template = template(&json!({"proxmox": {"tag": "base"}}), "20Gi");
        template.name.namespace = "team".into();
        let found = Ok(vec![found()]);
        for (allowed, reason) in [
            (json!([]), "NamespaceNotAllowed"),
            (json!(["teams"]), "NamespaceNotAllowed"),
            (json!(["team"]), "ValidationSucceeded"),
            (json!(["*"]), "ValidationSucceeded"),
        ] {
            let spec = json!({"provider": "proxmox", "endpoint": "https://pve:8006", "allowedNamespaces": allowed});
            let cluster: Cluster = object("pve", spec);
            let decision = decide(&Observed {
                template: &template,
                cluster: Some((&cluster, true)),
                found: Some(&found),
                listed: Some(&Listed::default()),
                users: &BTreeSet::new(),
                pools: &BTreeSet::new(),
                now: Now { wall: Timestamp::UNIX_EPOCH, monotonic: Moment::default() },
            });
            assert_eq!(decision.reason, reason, "{}", decision.message);
        }
    }
}

//! A machine as a `VirtualMachine` object, and back.

use crate::kubevirt::{NODE, seed};
use fleet::hypervisor::{Blueprint, Failure, MachineId, NodeState, Owner, Power, Seen, Template, TemplateRef};
use fleet::record::{self, Record};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The annotation with the owner record.
pub(crate) const OWNER: &str = "hyperfleet.io/owner";
/// What the labels of tags begin with.
const TAG: &str = "tag.hyperfleet.io/";
/// The label that makes a `VirtualMachine` a template.
pub(crate) const TEMPLATE: &str = "hyperfleet.io/template";
/// The name of the volume with the seed.
const SEED: &str = "virtpilot-seed";
/// Other fields that give a machine CPUs and memory, below the domain.
const SIZES: [&str; 6] = [
    "/cpu/maxSockets",
    "/memory/maxGuest",
    "/resources/requests/cpu",
    "/resources/requests/memory",
    "/resources/limits/cpu",
    "/resources/limits/memory",
];
/// What tells one machine from another, below the domain.
const IDENTITY: [&str; 3] = ["/firmware/uuid", "/firmware/serial", "/chassis/serial"];

pub(crate) fn kind() -> ApiResource {
    ApiResource {
        group: "kubevirt.io".into(),
        version: "v1".into(),
        api_version: "kubevirt.io/v1".into(),
        kind: "VirtualMachine".into(),
        plural: "virtualmachines".into(),
    }
}

pub(crate) fn id(machine: &DynamicObject) -> MachineId {
    MachineId(machine.metadata.name.clone().unwrap_or_default())
}

pub(crate) fn record(machine: &DynamicObject) -> Option<Record> {
    record::decode(machine.metadata.annotations.as_ref()?.get(OWNER)?, machine.metadata.name.as_ref()?)
}

pub(crate) fn owner(machine: &DynamicObject) -> Option<Owner> {
    record(machine).map(|record| record.owner)
}

pub(crate) fn seen(machine: &DynamicObject) -> Seen {
    let labels = machine.metadata.labels.clone().unwrap_or_default();
    let domain = &machine.data["spec"]["template"]["spec"]["domain"];
    let memory = domain["memory"]["guest"].as_str().or_else(|| domain["resources"]["requests"]["memory"].as_str());
    // Of a machine of ours the host name, which the id is not.
    let host = machine.data["spec"]["template"]["spec"]["hostname"].as_str().filter(|_| record(machine).is_some());
    Seen {
        name: host.map_or_else(|| id(machine).0, str::to_owned).into(),
        node: NODE.into(),
        power: power(&machine.data),
        is_template: labels.contains_key(TEMPLATE),
        lock: machine.metadata.deletion_timestamp.as_ref().map(|_| "delete".into()),
        is_tagged: has_tag(machine, fleet::tags::FLEET),
        pool: None,
        cpus: cpus(&domain["cpu"]),
        memory: memory.and_then(quantity).unwrap_or_default(),
    }
}

fn has_tag(machine: &DynamicObject, tag: &str) -> bool {
    let labels = machine.metadata.labels.iter().flat_map(BTreeMap::keys);
    labels.filter_map(|label| label.strip_prefix(TAG)).any(|found| found == tag)
}

fn cpus(cpu: &Value) -> u32 {
    let count = |name: &str| cpu[name].as_u64().unwrap_or(1);
    u32::try_from(count("cores") * count("sockets") * count("threads")).unwrap_or(u32::MAX)
}

/// A machine that was never started has no status.
fn power(machine: &Value) -> Power {
    match machine["status"]["printableStatus"].as_str() {
        Some("Stopped") => Power::Stopped,
        Some("Running" | "Paused" | "Migrating" | "Starting" | "Stopping" | "Terminating") => Power::Running,
        None if machine["spec"]["runStrategy"] == "Halted" => Power::Stopped,
        _ => Power::Unknown,
    }
}

/// What all nodes that can run machines have together, and what the machines of the namespace use of it.
pub(crate) fn capacity(nodes: &[Node], machines: &BTreeMap<MachineId, Seen>) -> NodeState {
    let mut state = NodeState { is_online: false, cpus: 0, memory: 0, memory_used: 0 };
    for node in nodes {
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let Some(allocatable) = allocatable else { continue };
        let number = |name: &str| allocatable.get(name).and_then(|given| quantity(&given.0)).unwrap_or_default();
        state.is_online = true;
        state.cpus += u32::try_from(number("cpu")).unwrap_or_default();
        state.memory += number("memory");
    }
    state.memory_used = machines.values().filter(|seen| seen.power == Power::Running).map(|seen| seen.memory).sum();
    state
}

/// A quantity of Kubernetes, rounded down to a whole number.
fn quantity(text: &str) -> Option<u64> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor: f64 = match unit {
        "" => 1.0,
        "m" => 0.001,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| (number * factor) as u64)
}

/// The template that is meant: of several with a tag the newest.
pub(crate) fn choose_template(machines: &[DynamicObject], wanted: &TemplateRef) -> Result<Template, Failure> {
    let is_wanted = |machine: &&DynamicObject| {
        let seen = seen(machine);
        match wanted {
            TemplateRef::Id(MachineId(name)) | TemplateRef::Name(name) => seen.is_template && *seen.name == **name,
            TemplateRef::Tag(tag) => seen.is_template && has_tag(machine, tag),
        }
    };
    let age = |machine: &&DynamicObject| machine.metadata.creation_timestamp.clone();
    let found = machines.iter().filter(is_wanted).max_by_key(age).ok_or_else(|| Failure::Configuration {
        message: format!("there is no VirtualMachine that is a template and meant by {wanted:?}"),
        remedy: format!("label a VirtualMachine of the namespace with {TEMPLATE}, and name it or its tag ({TAG}NAME)"),
    })?;
    if !found.data["spec"]["instancetype"].is_null() {
        let name = id(found).0;
        return Err(Failure::Configuration {
            message: format!(
                "VirtualMachine {name} has spec.instancetype, beside which KubeVirt accepts no CPUs and memory"
            ),
            remedy: format!(
                "remove spec.instancetype of {name}: resources of the HypervisorMachineTemplate take its place"
            ),
        });
    }
    let disk = found.data["spec"]["template"]["spec"]["domain"]["devices"]["disks"][0]["name"].as_str();
    Ok(Template {
        id: id(found),
        name: id(found).0,
        node: NODE.to_owned(),
        storage: String::new(),
        others: BTreeSet::new(),
        is_shared: true,
        can_link: true,
        disk: disk.unwrap_or_default().to_owned(),
        disk_bytes: 0,
        has_agent: true,
    })
}

/// In which state KubeVirt has halted a machine: one that a person has paused is not.
pub(crate) fn halted(machine: &DynamicObject) -> Option<String> {
    let status = &machine.data["status"];
    let paused = status["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Paused")?;
    let reason = paused["reason"].as_str().filter(|reason| paused["status"] == "True" && *reason != "PausedByUser")?;
    Some(format!("{}, {reason}", status["printableStatus"].as_str().unwrap_or("Paused")))
}

/// A new machine with the spec of a template; it does not run.
pub(crate) fn copy(template: &DynamicObject, blueprint: &Blueprint) -> Result<DynamicObject, Failure> {
    let mut spec = template.data["spec"].clone();
    let Some(fields) = spec.as_object_mut() else {
        return Err(Failure::Permanent(format!("VirtualMachine {} has no spec", blueprint.template.id.0)));
    };
    fields.remove("running");
    fields.insert("runStrategy".into(), "Halted".into());
    let inside = &mut spec["template"]["spec"];
    inside["hostname"] = blueprint.name.clone().into();
    IDENTITY.iter().for_each(|path| remove(&mut inside["domain"], path));
    for interface in list(inside, "/domain/devices/interfaces") {
        remove(interface, "/macAddress");
    }
    let mut renamed = BTreeMap::new();
    for disk in list(&mut spec, "/dataVolumeTemplates") {
        let old = disk["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let new = format!("{}-{old}", blueprint.id.0);
        disk["metadata"]["name"] = new.clone().into();
        renamed.insert(old, new);
    }
    for volume in list(&mut spec, "/template/spec/volumes") {
        let data_volume = volume["dataVolume"]["name"].as_str().map(|name| renamed.get(name).cloned());
        match data_volume {
            Some(Some(new)) => volume["dataVolume"]["name"] = new.into(),
            Some(None) => return Err(shared(blueprint, volume)),
            None if !volume["persistentVolumeClaim"].is_null() => return Err(shared(blueprint, volume)),
            None => {}
        }
    }
    let record =
        Record { id: blueprint.id.0.clone(), owner: blueprint.owner.clone(), seed: None, is_configured: false };
    let metadata = ObjectMeta {
        name: Some(blueprint.id.0.clone()),
        namespace: template.metadata.namespace.clone(),
        annotations: Some([(OWNER.to_owned(), record::encode(&record))].into()),
        ..ObjectMeta::default()
    };
    let mut machine = DynamicObject::new("", &kind()).data(json!({"spec": spec}));
    machine.metadata = metadata;
    Ok(machine)
}

fn shared(blueprint: &Blueprint, volume: &Value) -> Failure {
    Failure::Configuration {
        message: format!(
            "template {}: its volume {} cannot be in two machines",
            blueprint.template.id.0, volume["name"]
        ),
        remedy: "use a container disk, or list the data volume in spec.dataVolumeTemplates".into(),
    }
}

/// The items of a list, if it is there: an index would add a null, which the API server refuses.
fn list<'a>(value: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> {
    value.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Removes a field, if it is there.
fn remove(value: &mut Value, path: &str) {
    let Some((parent, name)) = path.rsplit_once('/') else { return };
    if let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(name);
    }
}

/// Brings a machine to its blueprint; the Secret, if there is one, has to exist before.
pub(crate) fn configure(machine: &mut DynamicObject, blueprint: &Blueprint) -> Result<Option<Secret>, Failure> {
    let unsupported = |what: &str| Failure::Configuration {
        message: format!("KubeVirt cannot give machine {} {what}", blueprint.id.0),
        remedy: "leave it out, or make it part of the template".into(),
    };
    if blueprint.disk_bytes.is_some() {
        return Err(unsupported("another size of disk"));
    }
    let secret = blueprint.seed.as_ref().map(|files| seed::secret(machine, &files.files));
    let inside = &mut machine.data["spec"]["template"]["spec"];
    for (field, count) in [("cores", blueprint.cpus), ("sockets", 1), ("threads", 1)] {
        inside["domain"]["cpu"][field] = count.into();
    }
    inside["domain"]["memory"]["guest"] = format!("{}Mi", blueprint.memory >> 20).into();
    SIZES.iter().for_each(|path| remove(&mut inside["domain"], path));
    if let Some(network) = &blueprint.network {
        if network.vlan.is_some() {
            return Err(unsupported("a VLAN"));
        }
        inside["networks"] = json!([{"name": "default", "multus": {"networkName": network.bridge}}]);
        inside["domain"]["devices"]["interfaces"] = json!([{"name": "default", "bridge": {}}]);
    }
    if let Some(secret) = &secret {
        // KubeVirt reads the first volume with cloud-init, and no other.
        let is_other =
            |volume: &Value| !volume["cloudInitNoCloud"].is_null() || !volume["cloudInitConfigDrive"].is_null();
        let volumes = inside["volumes"].as_array().into_iter().flatten();
        let others: Vec<Value> =
            volumes.filter(|volume| is_other(volume)).map(|volume| volume["name"].clone()).collect();
        for place in ["/volumes", "/domain/devices/disks"] {
            if let Some(list) = inside.pointer_mut(place).and_then(Value::as_array_mut) {
                list.retain(|item| !others.contains(&item["name"]));
            }
        }
        put(&mut inside["volumes"], json!({"name": SEED, "cloudInitNoCloud": seed::source(secret)}));
        put(&mut inside["domain"]["devices"]["disks"], json!({"name": SEED, "disk": {"bus": "virtio"}}));
    }
    let labels = machine.metadata.labels.get_or_insert_default();
    let others: BTreeSet<String> = labels.keys().filter(|label| label.starts_with(TAG)).cloned().collect();
    labels.retain(|label, _| !others.contains(label));
    labels.extend(blueprint.tags.iter().map(|tag| (format!("{TAG}{tag}"), String::new())));
    let record = Record { id: blueprint.id.0.clone(), owner: blueprint.owner.clone(), seed: None, is_configured: true };
    machine.metadata.annotations.get_or_insert_default().insert(OWNER.to_owned(), record::encode(&record));
    Ok(secret)
}

/// Replaces the item with the same name, or adds it.
fn put(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(items) = list.as_array_mut() else { return };
    items.retain(|other| other["name"] != item["name"]);
    items.push(item);
}

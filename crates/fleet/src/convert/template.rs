//! The spec of a `HypervisorMachineTemplate`.

use super::fields::Fields;
use api::fleet::Quantity;
use serde_json::{Map, Value, json};

pub(super) fn spec(fields: &mut Fields) -> Value {
    let mut spec = Map::new();
    let mut reference = Map::new();
    reference.insert("name".into(), json!(fields.required("hypervisorClusterRef.name")));
    if let Some(namespace) = fields.text("hypervisorClusterRef.namespace") {
        reference.insert("namespace".into(), json!(namespace));
    }
    spec.insert("hypervisorClusterRef".into(), Value::Object(reference));
    spec.insert("template".into(), json!({"proxmox": proxmox(fields)}));
    spec.insert("resources".into(), resources(fields));
    if let Some(network) = network(fields) {
        spec.insert("network".into(), network);
    }
    let mut cloud_init = Map::new();
    for field in ["userData", "metaData", "networkData"] {
        if let Some(text) = fields.text(&format!("cloudInit.{field}")) {
            cloud_init.insert(field.into(), json!(text));
        }
    }
    if !cloud_init.is_empty() {
        let what = "its image is uploaded to the storage local; set cloudInit.storage if that is another one";
        fields.remark("spec.cloudInit", what);
        spec.insert("cloudInit".into(), Value::Object(cloud_init));
    }
    for (field, methods) in
        [("attestation", ["join-token", "tpm"]), ("bootstrap", ["runner-token", "external-secrets"])]
    {
        let Some(value) = fields.take(field) else { continue };
        let method = value["method"].as_str().unwrap_or_default();
        if !methods.contains(&method) {
            fields.error(&format!("spec.{field}.method"), &format!("{method:?} is not one of {}", methods.join(", ")));
        }
        fields.remark(&format!("spec.{field}"), "it is stored and has no effect yet");
        spec.insert(field.into(), json!({"method": method, "config": value["config"].as_object()}));
        for other in
            value.as_object().into_iter().flat_map(Map::keys).filter(|key| *key != "method" && *key != "config")
        {
            fields.note(&format!("spec.{field}.{other}"), "there is no such field");
        }
    }
    fields.drop_all("metadata", "machines get the tags of their HypervisorCluster");
    Value::Object(spec)
}

fn proxmox(fields: &mut Fields) -> Value {
    let mut proxmox = Map::new();
    let name = fields.text("template.proxmox.name");
    match (fields.take("template.proxmox.templateId").map(|id| id.as_u64()), name) {
        (Some(Some(id)), _) if (100..=999_999_999).contains(&id) => {
            proxmox.insert("templateId".into(), json!(id));
        }
        (Some(_), _) => fields.error("spec.template.proxmox.templateId", "it has to be a number from 100 to 999999999"),
        (None, Some(name)) => {
            proxmox.insert("name".into(), json!(name));
        }
        (None, None) => fields.error("spec.template.proxmox.templateId", "it is missing"),
    }
    if fields.take("template.proxmox.clone") == Some(json!(false)) {
        fields.note("spec.template.proxmox.clone", "machines are always clones");
    }
    if let Some(Value::Bool(is_linked)) = fields.take("template.proxmox.linkedClone") {
        proxmox.insert("linkedClone".into(), json!(is_linked));
    }
    if let Some(storage) = fields.text("template.proxmox.storage") {
        proxmox.insert("storage".into(), json!(storage));
    }
    Value::Object(proxmox)
}

fn resources(fields: &mut Fields) -> Value {
    let mut resources = Map::new();
    match fields.take("resources.cpu").and_then(|cpu| cpu.as_u64()) {
        Some(cpu) if (1..=512).contains(&cpu) => {
            resources.insert("cpu".into(), json!(cpu));
        }
        _ => fields.error("spec.resources.cpu", "it has to be a number from 1 to 512"),
    }
    let memory = fields.required("resources.memory");
    let is_decimal = |text: &str| text.ends_with(['K', 'M', 'G', 'T']);
    if !memory.is_empty() && Quantity(memory.clone()).bytes().is_none() {
        fields.error("spec.resources.memory", &format!("{memory:?} is not a quantity such as 8Gi"));
    } else if is_decimal(&memory) {
        let what = format!("{memory} is counted in powers of 1000; write {memory}i for powers of 1024");
        fields.remark("spec.resources.memory", &what);
    }
    resources.insert("memory".into(), json!(memory));
    if let Some(disk) = fields.text("resources.disk") {
        let binary = if is_decimal(&disk) { format!("{disk}i") } else { disk.clone() };
        if Quantity(binary.clone()).bytes().is_none() {
            fields.error("spec.resources.disk", &format!("{disk:?} is not a quantity such as 50Gi"));
        }
        if binary != disk {
            fields.remark(
                "spec.resources.disk",
                &format!("{disk} becomes {binary}: Proxmox VE counts in powers of 1024"),
            );
        }
        resources.insert("disk".into(), json!(binary));
    }
    Value::Object(resources)
}

fn network(fields: &mut Fields) -> Option<Value> {
    let mut network = Map::new();
    let mode = fields.text("network.mode");
    let mode = match mode.as_deref() {
        Some(mode @ ("dhcp" | "static" | "cloud-init")) => Some(mode.to_owned()),
        Some(other) => {
            let why = format!("{other:?} is not dhcp, static or cloud-init, and without it DHCP is used");
            fields.note("spec.network.mode", &why);
            None
        }
        None => None,
    };
    let is_static = mode.as_deref() == Some("static");
    if let Some(mode) = mode {
        network.insert("mode".into(), json!(mode));
    }
    if is_static {
        let ip = fields.required("network.staticConfig.ip");
        if !ip.is_empty() && !ip.contains('/') {
            let why = format!("{ip} has no prefix; write it with one, such as {ip}/24");
            fields.error("spec.network.staticConfig.ip", &why);
        }
        let mut fixed = json!({"ip": ip, "gateway": fields.required("network.staticConfig.gateway")});
        if let Some(dns) = fields.take("network.staticConfig.dns") {
            fixed["dns"] = dns;
        }
        network.insert("staticConfig".into(), fixed);
    } else {
        fields.drop_all("network.staticConfig", "it has an effect only with network.mode static");
    }
    for field in ["bridge", "vlan"] {
        if let Some(value) = fields.take(&format!("network.{field}")) {
            network.insert(field.into(), value);
        }
    }
    fields.drop_all("network.dhcp", "the guest decides what its DHCP client sends; use cloudInit.networkData");
    fields.drop_all("network.dns", "use network.staticConfig.dns or cloudInit.networkData");
    (!network.is_empty()).then_some(Value::Object(network))
}

//! Renders an asset with facts into one object.

use crate::cluster::facts::Facts;
use crate::cluster::query::Query;
use crate::pack::asset::Asset;
use crate::pack::catalog::Catalog;
use crate::pack::load::is_template;
use crate::template::budget::RenderBudget;
use crate::template::{Parsed, RenderContext, Stop, Value as Item, functions, names, run};
use crate::yaml;
use change::Key;
use serde_json::Value;
use std::rc::Rc;

/// The result of rendering.
#[derive(Debug, Clone, PartialEq)]
pub enum Rendered {
    /// The desired object.
    Object(Value),
    /// The template renders to nothing, so no object is desired.
    Empty,
    /// The template says why there is no object here.
    NotApplicable(String),
    /// These queries must be answered first.
    Needs(Vec<Query>),
    /// The cluster could not answer this query, so nothing may change.
    Held(Query),
    /// The template cannot be rendered; the message has the file, the line if known, and the reason.
    Broken(String),
}

/// Renders an asset, or returns the queries that must be answered first.
pub fn render(catalog: &Catalog, asset: &Asset, facts: &Facts) -> Rendered {
    let path = &asset.path;
    let text = if is_template(path) {
        let source = catalog.files.get(path).and_then(|content| std::str::from_utf8(content).ok());
        // It was parsed before, when the pack was loaded.
        let Some(parsed) = source.and_then(|source| Parsed::read(source).ok()) else {
            return Rendered::Broken(format!("{path}: the pack has no such template"));
        };
        let context = RenderContext {
            facts,
            files: &catalog.files,
            reads: asset.reads.as_deref(),
            budget: RenderBudget::default(),
        };
        match run(&parsed, &data(asset, facts), &context) {
            Ok(text) => text,
            Err((_, Stop::Needs(query))) => return Rendered::Needs(needs(query, &parsed, asset, facts)),
            Err((_, Stop::Held(query))) => return Rendered::Held(query),
            Err((_, Stop::NotApplicable(why))) => return Rendered::NotApplicable(why),
            Err((line, Stop::Failed(reason))) => return Rendered::Broken(format!("{path}:{line}: {reason}")),
        }
    } else {
        match catalog.files.get(path).map(std::str::from_utf8) {
            Some(Ok(text)) => text.to_owned(),
            Some(Err(_)) => return Rendered::Broken(format!("{path}: it is not UTF-8 text")),
            None => return Rendered::Broken(format!("{path}: the pack has no such file")),
        }
    };
    match object(&text, asset.document.as_ref().map(|document| &document.key)) {
        Ok(Some(object)) => Rendered::Object(object),
        Ok(None) => Rendered::Empty,
        Err(reason) => Rendered::Broken(format!("{path}: {reason}")),
    }
}

/// The query that stopped the template, and all its other queries with constant arguments, so that one round is usually enough.
fn needs(asked: Query, parsed: &Parsed, asset: &Asset, facts: &Facts) -> Vec<Query> {
    let mut queries = vec![asked];
    for (_, (function, texts)) in names::constant_calls(parsed) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        if let Some(query) = functions::query(&function, &texts)
            && functions::allowed(&query, asset.reads.as_deref()).is_ok()
            && !facts.answers.contains_key(&query)
        {
            queries.push(query);
        }
    }
    queries.sort();
    queries.dedup();
    queries
}

/// The one object of a text, or the one that an asset stands for; `None` if there is none.
fn object(text: &str, of: Option<&Key>) -> Result<Option<Value>, String> {
    let mut documents = yaml::read::documents(text).map_err(|fault| match fault.line {
        Some(line) => format!("line {line} of its output: {}", fault.message),
        None => format!("its output: {}", fault.message),
    })?;
    documents.retain(|document| !document.is_null());
    if let Some(key) = of {
        let is_of = |document: &Value| {
            Key::of(document).is_some_and(|other| (other.kind, other.name) == (key.kind.clone(), key.name.clone()))
        };
        documents.retain(is_of);
    }
    let object = match documents.len() {
        0 => return Ok(None),
        1 => documents.remove(0),
        count => return Err(format!("it renders to {count} documents, expected one")),
    };
    if !object.is_object() {
        return Err(format!("it renders to {}, not to an object", yaml::read::kind_of(&object)));
    }
    for field in ["/apiVersion", "/kind", "/metadata/name"] {
        match object.pointer(field).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => {}
            _ => return Err(format!("it renders to an object without {}", field[1..].replace('/', "."))),
        }
    }
    Ok(Some(object))
}

/// The data of the template.
fn data(asset: &Asset, facts: &Facts) -> Item {
    let hardware = &facts.hardware;
    let topology = &facts.topology;
    map([
        ("HCO", hco(&facts.hco)),
        (
            "Hardware",
            map([
                ("PCIDevicesPresent", Item::Bool(hardware.pci_devices_present)),
                ("NUMANodesPresent", Item::Bool(hardware.numa_nodes_present)),
                ("VFIOCapable", Item::Bool(hardware.vfio_capable)),
                ("USBDevicesPresent", Item::Bool(hardware.usb_devices_present)),
                ("GPUPresent", Item::Bool(hardware.gpu_present)),
            ]),
        ),
        (
            "Topology",
            map([
                ("IsHCP", Item::Bool(topology.is_hcp)),
                ("IsCompact", Item::Bool(topology.is_compact)),
                ("HasSchedulableMasters", Item::Bool(topology.has_schedulable_masters)),
                ("IsAWS", Item::Bool(topology.is_aws)),
                ("IsAzure", Item::Bool(topology.is_azure)),
                ("IsGCP", Item::Bool(topology.is_gcp)),
                ("IsBareMetal", Item::Bool(topology.is_bare_metal)),
                ("IsVSphere", Item::Bool(topology.is_vsphere)),
                ("IsOpenStack", Item::Bool(topology.is_open_stack)),
                ("ControlPlaneTopology", Item::text(topology.control_plane_topology.as_str())),
                ("CloudProvider", Item::text(topology.cloud_provider.as_str())),
                ("MasterCount", Item::Int(topology.master_count)),
                ("WorkerCount", Item::Int(topology.worker_count)),
                ("TotalNodeCount", Item::Int(topology.total_node_count)),
            ]),
        ),
        ("ClusterVersion", Item::text(facts.cluster_version.as_str())),
        ("Images", Item::map_of_text(&facts.images)),
        ("Params", Item::map_of_text(&asset.template_params)),
    ])
}

/// The HyperConverged object, with plain keys for what are methods in Go.
fn hco(object: &Value) -> Item {
    let text = |path: &str| Item::text(object.pointer(path).and_then(Value::as_str).unwrap_or(""));
    let texts = |path: &str| {
        let entries = object.pointer(path).and_then(Value::as_object).into_iter().flatten();
        Item::map_of_text(&entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect())
    };
    let whole = if object.is_object() { Item::from_json(object) } else { map([]) };
    map([
        ("Object", whole),
        ("GetNamespace", text("/metadata/namespace")),
        ("GetName", text("/metadata/name")),
        ("GetKind", text("/kind")),
        ("GetAPIVersion", text("/apiVersion")),
        ("GetLabels", texts("/metadata/labels")),
        ("GetAnnotations", texts("/metadata/annotations")),
    ])
}

fn map<const N: usize>(entries: [(&str, Item); N]) -> Item {
    Item::map(entries.into_iter().map(|(key, value)| (Rc::from(key), value)).collect())
}

#[cfg(test)]
mod limits;
#[cfg(test)]
mod tests;

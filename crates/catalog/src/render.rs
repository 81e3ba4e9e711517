//! Renders an asset with facts into one object.

use crate::cluster::facts::Facts;
use crate::cluster::query::Query;
use crate::pack::asset::Asset;
use crate::pack::catalog::Catalog;
use crate::pack::load::is_template;
use crate::template::budget::RenderBudget;
use crate::template::{LastYaml, Parsed, RenderContext, Stop, Value as Item, functions, names, run};
use crate::yaml;
use change::Key;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

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
    Renderer::new(catalog, facts).render(asset)
}

/// Renders assets one after another. What an asset has in common with the one before is not done again: the parsed template, the YAML that
/// it reads, and a file with several documents, each of which is an asset.
pub struct Renderer<'a> {
    /// The pack.
    pub catalog: &'a Catalog,
    /// What is known of the cluster.
    pub facts: &'a Facts,
    last: RefCell<Option<RenderedFile>>,
    template: RefCell<Option<(String, Arc<Parsed>)>>,
    yaml: LastYaml,
}

/// The documents of a file, or why there are none.
struct RenderedFile {
    path: String,
    parameters: BTreeMap<String, String>,
    documents: Result<Vec<Value>, Rendered>,
}

impl<'a> Renderer<'a> {
    /// A renderer for a cluster.
    pub fn new(catalog: &'a Catalog, facts: &'a Facts) -> Renderer<'a> {
        Renderer { catalog, facts, last: RefCell::default(), template: RefCell::default(), yaml: LastYaml::default() }
    }

    /// Renders an asset, or returns the queries that must be answered first.
    pub fn render(&self, asset: &Asset) -> Rendered {
        let rendered = match &asset.document {
            None => self.documents(asset),
            Some(document) => self.document(asset, &document.key),
        };
        match rendered.map(|documents| single(documents, &asset.path)) {
            Ok(Rendered::Object(mut object)) => {
                // It exists under the name that the Go advisor gave it.
                if self.facts.formerly_named.contains(&asset.name)
                    && let Some(name) = self.catalog.former_name(&asset.name)
                {
                    object["metadata"]["name"] = name.into();
                }
                Rendered::Object(object)
            }
            Ok(result) | Err(result) => result,
        }
    }

    /// The one document of its file that an asset stands for; empty if there is none.
    fn document(&self, asset: &Asset, key: &Key) -> Result<Vec<Value>, Rendered> {
        let mut last = self.last.borrow_mut();
        let is_last =
            |last: &&mut RenderedFile| (&last.path, &last.parameters) == (&asset.path, &asset.template_params);
        let file = match last.as_mut().filter(is_last) {
            Some(file) => file,
            None => last.insert(RenderedFile {
                path: asset.path.clone(),
                parameters: asset.template_params.clone(),
                documents: self.documents(asset),
            }),
        };
        let is_wanted = |document: &&Value| {
            Key::of(document).is_some_and(|other| (&other.kind, &other.name) == (&key.kind, &key.name))
        };
        let documents = file.documents.as_ref().map_err(Clone::clone)?;
        Ok(documents.iter().filter(is_wanted).cloned().collect())
    }

    /// A template, which often is that of the asset before.
    fn parsed(&self, path: &str, text: &str) -> Option<Arc<Parsed>> {
        let mut last = self.template.borrow_mut();
        let (_, parsed) = match last.take().filter(|(known, _)| known == path) {
            Some(known) => last.insert(known),
            None => last.insert((path.to_owned(), Parsed::read(text).ok()?)),
        };
        Some(parsed.clone())
    }

    /// The documents of an asset's file.
    fn documents(&self, asset: &Asset) -> Result<Vec<Value>, Rendered> {
        let (catalog, facts, path) = (self.catalog, self.facts, &asset.path);
        let text = match catalog.files.get(path).map(std::str::from_utf8) {
            Some(Ok(text)) => text,
            Some(Err(_)) => return Err(Rendered::Broken(format!("{path}: it is not UTF-8 text"))),
            None => return Err(Rendered::Broken(format!("{path}: the pack has no such file"))),
        };
        if !is_template(path) {
            return read(text, path);
        }
        // It was parsed before, when the pack was loaded.
        let Some(parsed) = self.parsed(path, text) else {
            return Err(Rendered::Broken(format!("{path}: it is not a valid template")));
        };
        let context = RenderContext {
            facts,
            files: &catalog.files,
            reads: asset.reads.as_deref(),
            yaml: &self.yaml,
            gzipped: &catalog.gzipped,
            budget: RenderBudget::default(),
        };
        match run(&parsed, &data(asset, facts), &context) {
            Ok(text) => read(&text, path),
            Err((_, Stop::Needs(query))) => Err(Rendered::Needs(needs(query, &parsed, asset, facts))),
            Err((_, Stop::Held(query))) => Err(Rendered::Held(query)),
            Err((_, Stop::NotApplicable(why))) => Err(Rendered::NotApplicable(why)),
            Err((line, Stop::Failed(reason))) => Err(Rendered::Broken(format!("{path}:{line}: {reason}"))),
        }
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

/// The documents of a text that have any content.
fn read(text: &str, path: &str) -> Result<Vec<Value>, Rendered> {
    let mut documents = yaml::read::documents(text).map_err(|fault| {
        Rendered::Broken(match fault.line {
            Some(line) => format!("{path}: line {line} of its output: {}", fault.message),
            None => format!("{path}: its output: {}", fault.message),
        })
    })?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// The one object of these documents.
fn single(mut documents: Vec<Value>, path: &str) -> Rendered {
    let broken = |reason: String| Rendered::Broken(format!("{path}: {reason}"));
    let object = match documents.len() {
        0 => return Rendered::Empty,
        1 => documents.remove(0),
        count => return broken(format!("it renders to {count} documents, expected one")),
    };
    if !object.is_object() {
        return broken(format!("it renders to {}, not to an object", yaml::read::kind_of(&object)));
    }
    for field in ["/apiVersion", "/kind", "/metadata/name"] {
        match object.pointer(field).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => {}
            _ => return broken(format!("it renders to an object without {}", field[1..].replace('/', "."))),
        }
    }
    Rendered::Object(object)
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
        ("SecureMetrics", Item::Bool(facts.secure_metrics)),
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

//! Functions that query the cluster and the pack. Nothing is fetched: the answer is among the facts, or the render stops.

use super::argument::text as take;
use crate::cluster::pool::Pool;
use crate::cluster::query::{Answer, Query};
use crate::cluster::selector::Selector;
use crate::pack::asset::Read;
use crate::template::run::{RenderContext, Stop};
use crate::template::value::Value;
use serde_json::{Value as Json, json};

/// The API version of objects that `objectExists` queries.
const MONITORING: &str = "monitoring.coreos.com/v1";

/// The API version of KubeletConfigs.
const MACHINE_CONFIGURATION: &str = "machineconfiguration.openshift.io/v1";
/// The pool of the control plane.
const MASTER: &str = "master";
/// Pools that do not inherit the configuration of workers.
const CONTROL_PLANE: [&str; 2] = [MASTER, "arbiter"];

/// The query of a function call with these arguments; `None` if the function makes no query.
pub fn query(function: &str, texts: &[&str]) -> Option<Query> {
    let object = |api_version: &str, kind: &str, namespace: &str, name: &str| Query::Object {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    match (function, texts) {
        ("crdEnum" | "crdHasField", [name, _]) | ("crdHasEnum", [name, _, _]) => {
            Some(Query::Crd { name: (*name).to_owned() })
        }
        ("objectExists", [kind, namespace, name]) => Some(object(MONITORING, kind, namespace, name)),
        ("getConfigMapData", [namespace, name, _]) => Some(object("v1", "ConfigMap", namespace, name)),
        ("prometheusRuleHasRecordingRule", [namespace, name, _]) => {
            Some(object(MONITORING, "PrometheusRule", namespace, name))
        }
        ("lookup", [api_version, kind, namespace, name]) => Some(object(api_version, kind, namespace, name)),
        ("storageProfileRWXClass" | "storageProfileRWXClasses", []) => {
            Some(Query::List { api_version: "cdi.kubevirt.io/v1beta1".to_owned(), kind: "StorageProfile".to_owned() })
        }
        ("foreignKubeletConfig", [_, _]) => {
            Some(Query::List { api_version: MACHINE_CONFIGURATION.to_owned(), kind: "KubeletConfig".to_owned() })
        }
        _ => None,
    }
}

/// The answer to the query of a function call; `None` if the object is absent.
fn answer<'a>(context: &RenderContext<'a>, function: &str, texts: &[&str]) -> Result<Option<&'a Json>, Stop> {
    let Some(query) = query(function, texts) else {
        return Err("the function makes no query".into());
    };
    allowed(&query, context.reads)?;
    match context.facts.answers.get(&query) {
        None => Err(Stop::Needs(query)),
        Some(Answer::Unknown) => Err(Stop::Held(query)),
        Some(Answer::Absent) => Ok(None),
        Some(Answer::Found(found)) => Ok(Some(found)),
    }
}

/// Checks a query: Secrets are never allowed, and if the asset declares reads, only those are.
pub fn allowed(query: &Query, reads: Option<&[Read]>) -> Result<(), String> {
    let (api_version, kind, namespace, name) = match query {
        Query::Object { api_version, kind, namespace, name } => (api_version.as_str(), kind, namespace, name.as_str()),
        Query::List { api_version, kind } => (api_version.as_str(), kind, &String::new(), ""),
        Query::Crd { name } => {
            ("apiextensions.k8s.io/v1", &"CustomResourceDefinition".to_owned(), &String::new(), name.as_str())
        }
    };
    if kind.eq_ignore_ascii_case("secret") {
        return Err("a template cannot read a Secret".into());
    }
    let Some(reads) = reads else { return Ok(()) };
    let is_list = matches!(query, Query::List { .. });
    let is_declared = reads.iter().any(|read| {
        read.api_version == api_version
            && read.kind == *kind
            && read.namespace.as_ref().is_none_or(|only| !is_list && only == namespace)
            && read.name.as_ref().is_none_or(|only| !is_list && only == name)
    });
    if is_declared { Ok(()) } else { Err(format!("{query} is not among the asset's reads")) }
}

fn texts(arguments: &[Value]) -> Result<Vec<&str>, String> {
    arguments.iter().map(take).collect()
}

/// `crdEnum`: the allowed values of a field of a CRD, or of the items of an array.
pub fn crd_enum(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let texts = texts(arguments)?;
    let found = answer(context, "crdEnum", &texts)?;
    Ok(Value::texts(enum_of(found, texts[1])))
}

/// `crdHasEnum`: whether a field of a CRD allows this value.
pub fn crd_has_enum(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let texts = texts(arguments)?;
    let found = answer(context, "crdHasEnum", &texts)?;
    Ok(Value::Bool(enum_of(found, texts[1]).contains(&texts[2])))
}

/// `crdHasField`: whether a CRD has this field.
pub fn crd_has_field(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let texts = texts(arguments)?;
    let found = answer(context, "crdHasField", &texts)?;
    Ok(Value::Bool(field_of(found, texts[1]).is_some()))
}

fn enum_of<'a>(crd: Option<&'a Json>, path: &str) -> Vec<&'a str> {
    let schema = field_of(crd, path);
    let values = schema.and_then(|schema| schema.get("enum").or_else(|| schema.pointer("/items/enum")));
    values.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
}

/// The schema of a field in the version that is stored.
fn field_of<'a>(crd: Option<&'a Json>, path: &str) -> Option<&'a Json> {
    let versions = crd.and_then(|crd| crd.pointer("/spec/versions")).and_then(Json::as_array);
    let is_stored = |version: &&Json| version.get("storage").and_then(Json::as_bool) == Some(true);
    let mut schema = versions
        .and_then(|versions| versions.iter().find(is_stored))
        .and_then(|version| version.pointer("/schema/openAPIV3Schema"));
    for step in path.split('.').filter(|step| !step.is_empty()) {
        schema = schema.and_then(|schema| {
            let through_items = || schema.pointer("/items/properties").and_then(|fields| fields.get(step));
            schema.get("properties").and_then(|fields| fields.get(step)).or_else(through_items)
        });
    }
    schema
}

/// `objectExists`.
pub fn object_exists(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(answer(context, "objectExists", &texts(arguments)?)?.is_some()))
}

/// `getConfigMapData`: the value of one key; `""` if it is absent.
pub fn get_config_map_data(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let texts = texts(arguments)?;
    let found = answer(context, "getConfigMapData", &texts)?;
    let data = found.and_then(|map| map.get("data")).and_then(|data| data.get(texts[2])).and_then(Json::as_str);
    Ok(Value::text(data.unwrap_or("")))
}

/// `prometheusRuleHasRecordingRule`.
pub fn has_recording_rule(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let texts = texts(arguments)?;
    let found = answer(context, "prometheusRuleHasRecordingRule", &texts)?;
    let items = |value: Option<&'_ Json>| value.and_then(Json::as_array).cloned().unwrap_or_default();
    let groups = items(found.and_then(|rule| rule.pointer("/spec/groups")));
    let has_rule = groups.iter().any(|group| {
        let rules = items(group.get("rules"));
        rules.iter().any(|rule| rule.get("record").and_then(Json::as_str) == Some(texts[2]))
    });
    Ok(Value::Bool(has_rule))
}

/// `lookup`: an object; an empty one if it is absent.
pub fn lookup(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let found = answer(context, "lookup", &texts(arguments)?)?;
    Ok(Value::from_json(found.unwrap_or(&json!({}))))
}

/// `poolRuns`: whether all machines of a pool run a MachineConfig of this name.
pub fn pool_runs(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (pool, machine_config) = (take(&arguments[0])?, take(&arguments[1])?);
    let mut pools = context.facts.pools.iter().filter(|candidate| candidate.name == pool);
    let runs = |pool: &Pool| pool.running().is_some_and(|names| names.iter().any(|name| name == machine_config));
    Ok(Value::Bool(pools.any(runs)))
}

/// `storageProfileRWXClass`: the first storage class by name that supports shared file systems.
pub fn storage_profile_rwx_class(context: &RenderContext<'_>, _: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(shared_classes(context)?.first().copied().unwrap_or("")))
}

/// `storageProfileRWXClasses`: all of them, by name.
pub fn storage_profile_rwx_classes(context: &RenderContext<'_>, _: &[Value]) -> Result<Value, Stop> {
    Ok(Value::texts(shared_classes(context)?))
}

fn shared_classes<'a>(context: &RenderContext<'a>) -> Result<Vec<&'a str>, Stop> {
    let found = answer(context, "storageProfileRWXClass", &[])?;
    let mut names: Vec<&str> = found
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter(|profile| supports_shared_files(profile))
        .filter_map(|profile| profile.pointer("/metadata/name").and_then(Json::as_str))
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// `foreignKubeletConfig`: the first KubeletConfig by name that is not ours, has not this name and selects a pool of this role; `""` if
/// there is none.
pub fn foreign_kubelet_config(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let texts = texts(arguments)?;
    let found = answer(context, "foreignKubeletConfig", &texts)?;
    if found.is_some() && context.facts.pools.is_empty() {
        // Where there are KubeletConfigs, there are pools, too.
        let (api_version, kind) = (MACHINE_CONFIGURATION.to_owned(), "MachineConfigPool".to_owned());
        return Err(Stop::Held(Query::List { api_version, kind }));
    }
    let is_of_role = |pool: &&Pool| match texts[0] {
        MASTER => pool.name == MASTER,
        _ => !CONTROL_PLANE.contains(&pool.name.as_str()),
    };
    let pools: Vec<&Pool> = context.facts.pools.iter().filter(is_of_role).collect();
    let is_foreign = |config: &&Json| {
        let (label, value) = api::MANAGED_BY;
        let metadata = &config["metadata"];
        metadata["labels"][label].as_str() != Some(value) && metadata["name"].as_str() != Some(texts[1])
    };
    let selects = |config: &&Json| {
        let selector: Selector =
            serde_json::from_value(config["spec"]["machineConfigPoolSelector"].clone()).unwrap_or_default();
        pools.iter().any(|pool| selector.matches(&pool.labels))
    };
    let configs = found.and_then(Json::as_array).into_iter().flatten().filter(is_foreign).filter(selects);
    let name = configs.filter_map(|config| config.pointer("/metadata/name").and_then(Json::as_str)).min();
    Ok(Value::text(name.unwrap_or("")))
}

fn supports_shared_files(profile: &Json) -> bool {
    let sets = profile.pointer("/status/claimPropertySets").and_then(Json::as_array);
    sets.into_iter().flatten().any(|set| {
        let modes = set.get("accessModes").and_then(Json::as_array);
        let is_shared = modes.into_iter().flatten().any(|mode| mode.as_str() == Some("ReadWriteMany"));
        is_shared && set.get("volumeMode").and_then(Json::as_str) == Some("Filesystem")
    })
}

/// `readAsset`: a file of the pack, by its path below `active/`.
pub fn read_asset(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let path = take(&arguments[0])?;
    let whole = format!("active/{path}");
    let content = context.files.get(&whole).ok_or_else(|| format!("the pack has no file {whole}"))?;
    context.budget.text(content.len())?;
    match std::str::from_utf8(content) {
        Ok(text) => Ok(Value::text(text)),
        Err(_) => Ok(Value::Bytes(content.into())),
    }
}

//! Loads the files of a pack into a validated catalogue.

use crate::cluster::hardware::DETECTORS;
use crate::cluster::topology::BOOLEANS;
use crate::pack::annotations;
use crate::pack::asset::{Asset, Install, Prune, Read};
use crate::pack::catalog::Catalog;
use crate::pack::condition::Condition;
use crate::pack::documents;
use crate::pack::fault::Fault;
use crate::pack::feature::{Feature, Framework, Maturity};
use crate::pack::files::Files;
use crate::pack::notes::Notes;
use crate::pack::requirement::requirement;
use crate::pack::setting::Setting;
use crate::pack::source::source;
use crate::pack::strict::{Entries, StrictReader, nearest};
use crate::pack::tombstone;
use crate::profile;
use crate::template::Gzipped;
use crate::template::{Parsed, functions, names};
use crate::yaml::node::{self, Content, YamlNode};
use api::annotation::PREFIX;
use change::Impact;
use std::collections::{BTreeMap, BTreeSet};

/// The paths of the catalogue file; that of newer packs comes first.
const CATALOGUES: [&str; 2] = ["active/metadata.yaml", "metadata.yaml"];
const ROOT_KEYS: [&str; 6] = ["assets", "profile_assets", "features", "framework", "excluded_assets", "settings"];
const SETTING_KEYS: [&str; 5] = ["name", "value", "default", "feature", "docs"];
const ASSET_KEYS: [&str; 20] = [
    "name",
    "group",
    "gate_crd",
    "path",
    "phase",
    "install",
    "component",
    "reconcile_order",
    "conditions",
    "template_params",
    "impact",
    "reads",
    "prune",
    "reports",
    "docs",
    "why",
    "source",
    "verify",
    "opt_out",
    "maturity",
];
const FEATURE_KEYS: [&str; 12] = [
    "name",
    "description",
    "maturity",
    "assets",
    "groups",
    "requires",
    "recommended",
    "why",
    "source",
    "verify",
    "opt_out",
    "opt_in",
];
const CONDITION_KEYS: [&str; 7] = ["type", "key", "value", "detector", "path", "field", "of"];
const CONDITION_TYPES: [&str; 8] = [
    "annotation",
    "feature-gate",
    "hardware-detection",
    "image",
    "hco-field-unconfigured",
    "topology",
    "kubevirt-feature-gate",
    "any",
];
const MATURITIES: [(&str, Maturity); 3] = [("ga", Maturity::Ga), ("tp", Maturity::Tp), ("dp", Maturity::Dp)];
const IMPACTS: [(&str, Impact); 4] =
    [("none", Impact::None), ("low", Impact::Low), ("medium", Impact::Medium), ("high", Impact::High)];

/// Loads a pack; the error is the list of all faults.
pub fn load(files: Files) -> Result<Catalog, Vec<Fault>> {
    let mut faults = Vec::new();
    check_templates(&files, &mut faults);
    let tombstones = tombstone::read(&files, &mut faults);
    let mut catalog = Catalog {
        assets: Vec::new(),
        profile_assets: Vec::new(),
        features: Vec::new(),
        framework: Framework::default(),
        excluded_assets: Vec::new(),
        settings: Vec::new(),
        profiles: Vec::new(),
        tombstones,
        annotations: annotations::read(&files),
        files,
        gzipped: Gzipped::default(),
    };
    match CATALOGUES.iter().find_map(|path| Some((*path, catalog.files.get(path)?))) {
        None => faults.push(Fault {
            file: CATALOGUES[0].to_owned(),
            line: None,
            message: "the pack has neither this file nor a metadata.yaml at its root".to_owned(),
        }),
        Some((path, content)) => {
            let text = String::from_utf8_lossy(content).into_owned();
            read(&mut catalog, path, &text, &mut faults);
        }
    }
    // What a profile names may be in a part of the catalogue that could not be read.
    let is_whole = !faults.iter().any(|fault| CATALOGUES.contains(&fault.file.as_str()));
    catalog.profiles = profile::read(&catalog, is_whole, &mut faults);
    if faults.is_empty() {
        for asset in catalog.assets.iter_mut().chain(&mut catalog.profile_assets) {
            asset.source = source(&catalog.files, asset);
            asset.queries = makes_queries(&catalog.files, asset);
        }
        return Ok(catalog);
    }
    faults.sort();
    Err(faults)
}

/// Whether a file is a template, judged by its name.
pub fn is_template(path: &str) -> bool {
    path.ends_with(".tpl") || path.ends_with(".tmpl")
}

/// Whether a condition or the template of an asset may make a query. A function that is only named in a comment counts, too.
fn makes_queries(files: &Files, asset: &Asset) -> bool {
    let text = files.get(&asset.path).and_then(|content| std::str::from_utf8(content).ok()).unwrap_or_default();
    asset.conditions.iter().any(Condition::makes_query)
        || (is_template(&asset.path) && functions::querying().any(|function| text.contains(function)))
}

/// Parses every template once, so that faults are reported when the pack is loaded. The parsed templates are dropped, because they take
/// many times the memory of their text and are needed only when facts change.
fn check_templates(files: &Files, faults: &mut Vec<Fault>) {
    for (path, content) in files.iter().filter(|(path, _)| is_template(path) && !path.starts_with("tombstones/")) {
        let mut note = |line: Option<usize>, message: String| {
            faults.push(Fault { file: path.to_owned(), line, message });
        };
        let Ok(source) = std::str::from_utf8(content) else {
            note(None, "it is not UTF-8 text".to_owned());
            continue;
        };
        match Parsed::read(source) {
            Err(mistakes) => mistakes.into_iter().for_each(|(line, message)| note(Some(line), message)),
            Ok(parsed) => {
                for (line, (function, texts)) in names::constant_calls(&parsed) {
                    if let ("readAsset", [read]) = (function.as_str(), texts.as_slice())
                        && files.get(&format!("active/{read}")).is_none()
                    {
                        note(Some(line), format!("readAsset: the pack has no file active/{read}"));
                    }
                }
            }
        }
    }
}

fn read(catalog: &mut Catalog, path: &str, text: &str, faults: &mut Vec<Fault>) {
    let mut strict = StrictReader::new(path);
    match node::documents(text) {
        Err(fault) => faults.push(Fault { file: path.to_owned(), line: fault.line, message: fault.message }),
        Ok(documents) => match documents.as_slice() {
            [root] => read_root(catalog, root, &mut strict),
            [] => strict.fault(1, "the catalogue is empty"),
            [_, second, ..] => strict.fault(second.line, "the catalogue must be one document"),
        },
    }
    faults.append(&mut strict.faults);
}

fn read_root(catalog: &mut Catalog, root: &YamlNode, strict: &mut StrictReader<'_>) {
    let Some(entries) = strict.entries(root, "the catalogue", &ROOT_KEYS) else { return };
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let of_autopilot = strict.items(&entries, "assets").iter().map(|node| (node, false));
    let of_profiles = strict.items(&entries, "profile_assets").iter().map(|node| (node, true));
    for (node, is_for_profiles) in of_autopilot.chain(of_profiles) {
        let Some(asset) = read_asset(node, is_for_profiles, &catalog.files, strict) else { continue };
        if let Some(first) = lines.insert(asset.name.clone(), node.line) {
            strict.fault(node.line, format!("asset `{}` is already declared in line {first}", asset.name));
        }
        if asset.name.contains('/') {
            strict.fault(node.line, format!("the name `{}` must have no slash", asset.name));
        }
        let text = catalog.files.get(&asset.path).and_then(|content| std::str::from_utf8(content).ok());
        match documents::split(asset, text.unwrap_or_default()) {
            Ok(assets) if is_for_profiles => catalog.profile_assets.extend(assets),
            Ok(assets) => catalog.assets.extend(assets),
            Err(why) => strict.fault(node.line, why),
        }
    }
    if let Some(node) = entries.get("framework")
        && let Some(framework) = strict.entries(node, "framework", &["maturity", "opt_in"])
    {
        catalog.framework = Framework {
            maturity: strict.choice(&framework, "maturity", &MATURITIES),
            opt_in: strict.optional(&framework, "opt_in"),
        };
    }
    let names: Vec<&str> = catalog.assets.iter().flat_map(|asset| [asset.name.as_str(), asset.entry()]).collect();
    let groups: BTreeSet<&str> = catalog.assets.iter().filter_map(|asset| asset.group.as_deref()).collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    for node in strict.items(&entries, "features") {
        let Some(entries) = strict.entries(node, "feature", &FEATURE_KEYS) else { continue };
        known_names(strict, &entries, "assets", "asset", &names);
        known_names(strict, &entries, "groups", "group", &groups);
        let feature = Feature {
            name: strict.required(&entries, "name").unwrap_or_default(),
            description: strict.optional(&entries, "description").unwrap_or_default(),
            maturity: strict.choice(&entries, "maturity", &MATURITIES),
            assets: strict.texts(&entries, "assets"),
            groups: strict.texts(&entries, "groups"),
            requires: strict.texts(&entries, "requires"),
            recommended: strict.texts(&entries, "recommended"),
            notes: read_notes(&entries, "description", strict),
            opt_in: strict.optional(&entries, "opt_in"),
        };
        if feature.assets.is_empty() && feature.groups.is_empty() {
            strict.fault(node.line, format!("feature `{}` names neither an asset nor a group", feature.name));
        }
        catalog.features.push(feature);
    }
    known_names(strict, &entries, "excluded_assets", "asset", &names);
    catalog.excluded_assets = strict.texts(&entries, "excluded_assets");
    let features: Vec<String> = catalog.features.iter().map(|feature| feature.name.clone()).collect();
    for node in strict.items(&entries, "settings") {
        catalog.settings.extend(read_setting(node, &features, strict));
    }
}

fn read_setting(node: &YamlNode, features: &[String], strict: &mut StrictReader<'_>) -> Option<Setting> {
    let entries = strict.entries(node, "setting", &SETTING_KEYS)?;
    let feature = strict.required(&entries, "feature")?;
    if !features.contains(&feature) {
        strict.fault(node.line, format!("there is no feature `{feature}`"));
    }
    Some(Setting {
        key: format!("{PREFIX}{}", strict.required(&entries, "name")?),
        values: strict.required(&entries, "value")?,
        default: strict.optional(&entries, "default").unwrap_or_else(|| "not set".to_owned()),
        feature,
        docs: strict.required(&entries, "docs")?,
    })
}

fn known_names(strict: &mut StrictReader<'_>, entries: &Entries<'_>, key: &str, what: &str, known: &[&str]) {
    for item in strict.items(entries, key) {
        if let Content::Text(name) = &item.content
            && !known.contains(&name.as_str())
        {
            let hint = nearest(name, known).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            strict.fault(item.line, format!("there is no {what} `{name}`{hint}"));
        }
    }
}

fn read_asset(node: &YamlNode, is_for_profiles: bool, files: &Files, strict: &mut StrictReader<'_>) -> Option<Asset> {
    let entries = strict.entries(node, "asset", &ASSET_KEYS)?;
    let path = strict.required(&entries, "path").unwrap_or_default();
    check_file(&path, &entries, files, strict);
    let install = strict.choice(&entries, "install", &[("always", Install::Always), ("opt-in", Install::OptIn)]);
    // A profile says by itself when an item is wanted.
    let install = match (entries.get("install"), is_for_profiles) {
        (None, true) => Install::Always,
        (Some(node), true) => {
            strict.fault(node.line, "an asset that only profiles use has no `install`");
            Install::Always
        }
        (None, false) => {
            strict.fault(entries.line, "asset needs `install`");
            Install::OptIn
        }
        (Some(_), false) => install.unwrap_or(Install::OptIn),
    };
    let prune = strict.choice(&entries, "prune", &[("default", Prune::Default), ("never", Prune::Never)]);
    let mut conditions = Vec::new();
    for item in strict.items(&entries, "conditions") {
        conditions.extend(read_condition(item, strict));
    }
    let text = files.get(&path).and_then(|content| std::str::from_utf8(content).ok());
    let asset = Asset {
        kind: text.and_then(requirement),
        name: strict.required(&entries, "name").unwrap_or_default(),
        group: strict.optional(&entries, "group"),
        gate_crd: strict.optional(&entries, "gate_crd"),
        path,
        phase: strict.number(&entries, "phase"),
        install,
        component: strict.optional(&entries, "component").unwrap_or_default(),
        reconcile_order: strict.number(&entries, "reconcile_order"),
        conditions,
        template_params: strict.text_map(&entries, "template_params"),
        impact: strict.choice(&entries, "impact", &IMPACTS),
        reads: entries.get("reads").map(|_| read_reads(&entries, strict)),
        prune: prune.unwrap_or_default(),
        reports: strict.boolean(&entries, "reports"),
        notes: read_notes(&entries, "docs", strict),
        document: None,
        source: String::new(),
        queries: false,
    };
    // An asset without a name cannot be referred to; its fault is already recorded.
    (!asset.name.is_empty()).then_some(asset)
}

fn read_notes(entries: &Entries<'_>, docs: &str, strict: &mut StrictReader<'_>) -> Notes {
    let is_list = matches!(entries.get("source").map(|node| &node.content), Some(Content::List(_)));
    Notes {
        docs: strict.optional(entries, docs).unwrap_or_default(),
        why: strict.optional(entries, "why").unwrap_or_default(),
        sources: match is_list {
            true => strict.texts(entries, "source"),
            false => strict.optional(entries, "source").into_iter().collect(),
        },
        verify: strict.optional(entries, "verify").unwrap_or_default(),
        opt_out: strict.optional(entries, "opt_out").unwrap_or_default(),
        maturity: strict.choice(entries, "maturity", &MATURITIES),
    }
}

fn check_file(path: &str, entries: &Entries<'_>, files: &Files, strict: &mut StrictReader<'_>) {
    if path.is_empty() {
        return;
    }
    let line = entries.line_of("path");
    let Some(content) = files.get(path) else {
        return strict.fault(line, format!("the pack has no file `{path}`"));
    };
    if is_template(path) {
        return;
    }
    if !path.ends_with(".yaml") && !path.ends_with(".yml") {
        return strict.fault(line, format!("`{path}` is neither a template (.tpl, .tmpl) nor .yaml"));
    }
    if let Err(fault) = crate::yaml::read::documents(&String::from_utf8_lossy(content)) {
        strict.faults.push(Fault { file: path.to_owned(), line: fault.line, message: fault.message });
    }
}

fn read_reads(entries: &Entries<'_>, strict: &mut StrictReader<'_>) -> Vec<Read> {
    let mut reads = Vec::new();
    for item in strict.items(entries, "reads") {
        let keys = ["apiVersion", "kind", "namespace", "name"];
        let Some(entries) = strict.entries(item, "an item of `reads`", &keys) else { continue };
        let read = Read {
            api_version: strict.required(&entries, "apiVersion").unwrap_or_default(),
            kind: strict.required(&entries, "kind").unwrap_or_default(),
            namespace: strict.optional(&entries, "namespace"),
            name: strict.optional(&entries, "name"),
        };
        if read.kind.eq_ignore_ascii_case("secret") {
            strict.fault(entries.line_of("kind"), "a template cannot read a Secret");
        }
        reads.push(read);
    }
    reads
}

fn read_condition(node: &YamlNode, strict: &mut StrictReader<'_>) -> Option<Condition> {
    let entries = strict.entries(node, "condition", &CONDITION_KEYS)?;
    let kind = strict.required(&entries, "type")?;
    match kind.as_str() {
        "annotation" => Some(Condition::Annotation {
            key: strict.required(&entries, "key")?,
            value: strict.optional(&entries, "value").filter(|value| !value.is_empty()),
        }),
        "feature-gate" => Some(Condition::FeatureGate { value: strict.required(&entries, "value")? }),
        "kubevirt-feature-gate" => Some(Condition::KubevirtFeatureGate { value: strict.required(&entries, "value")? }),
        "any" => {
            let mut of = Vec::new();
            for item in strict.items(&entries, "of") {
                of.extend(read_condition(item, strict));
            }
            if of.is_empty() {
                strict.fault(entries.line, "a condition of type `any` needs `of`, a list of conditions");
            }
            Some(Condition::Any { of })
        }
        "image" => Some(Condition::Image { key: strict.required(&entries, "key")? }),
        "hco-field-unconfigured" => Some(Condition::HcoFieldUnconfigured { path: strict.required(&entries, "path")? }),
        "hardware-detection" => {
            let detector = one_of(strict, &entries, "detector", &DETECTORS)?;
            Some(Condition::HardwareDetection { detector })
        }
        "topology" => {
            let field = one_of(strict, &entries, "field", &BOOLEANS)?;
            let value = match entries.get("value").map(|node| &node.content) {
                Some(Content::Bool(value)) => *value,
                _ => strict.choice(&entries, "value", &[("", true), ("true", true), ("false", false)]).unwrap_or(true),
            };
            Some(Condition::Topology { field, value })
        }
        other => {
            let hint =
                nearest(other, &CONDITION_TYPES).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            strict.fault(entries.line_of("type"), format!("there is no condition of type `{other}`{hint}"));
            None
        }
    }
}

fn one_of(strict: &mut StrictReader<'_>, entries: &Entries<'_>, key: &str, known: &[&str]) -> Option<String> {
    let word = strict.required(entries, key)?;
    if known.contains(&word.as_str()) {
        return Some(word);
    }
    let hint = nearest(&word, known).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    strict.fault(entries.line_of(key), format!("`{key}` is `{word}`, which is not one of {}{hint}", known.join(", ")));
    None
}

#[cfg(test)]
mod tests;

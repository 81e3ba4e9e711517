//! What a profile wants of a cluster: an object for each item, or why there is none.

use super::{Profile, ProfileItem, SettingValue, options};
use crate::applies::{Applicability, applies};
use crate::cluster::facts::Facts;
use crate::cluster::need::Need;
use crate::cluster::query::{Answer, Query};
use crate::pack::asset::{Asset, Prune};
use crate::pack::catalog::Catalog;
use crate::render::{Rendered, Renderer, render};
use api::annotation::PREFIX;
use change::{Impact, Key};
use serde_json::{Map, Value, json};

/// The items of a profile and the values that they are derived from.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileWants {
    /// What each item comes to, in the order of the profile.
    pub items: Vec<WantedItem>,
    /// The inputs that count: not those that an option replaces.
    pub inputs: Vec<ProfileInputValue>,
}

/// One input and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInputValue {
    /// What it is called.
    pub name: String,
    /// Its value as text, or that it is not set.
    pub value: String,
}

/// The value of an input that the cluster does not have.
const NOT_SET: &str = "not set";

/// What one item comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedItem {
    /// Its name, unique in the profile.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Earlier items that it relies on.
    pub needs: Vec<String>,
    /// The least impact that writing its object has.
    pub impact: Impact,
    /// The object under the name that the Go operator gave it, where the item wants another name: it does the same, so it has to go.
    pub former: Option<Key>,
    /// Whether the object has the name that the Go operator gave it.
    pub is_former: bool,
    /// Whether the object is never deleted, because of its kind or because the pack says so.
    pub is_never_deleted: bool,
    /// Whether the operator of its kind reports in the status what it made of the object.
    pub reports: bool,
    /// The object, or why there is none.
    pub result: WantedResult,
}

/// The object of an item, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum WantedResult {
    /// An object that is wanted.
    Object {
        /// Its key.
        key: Key,
        /// Its content, without any label or annotation of the autopilot.
        object: Value,
    },
    /// An option switches it off.
    Off {
        /// The object that it would be, if that is known and the cluster serves its kind.
        key: Option<Key>,
    },
    /// There is nothing to do on this cluster, and why.
    NotApplicable(String),
    /// The cluster does not serve this.
    Missing(Need),
    /// These queries must be answered first.
    Needs(Vec<Query>),
    /// The cluster could not answer this query.
    Held(Query),
    /// It cannot be rendered, and why.
    Broken(String),
}

/// Renders the items of a profile with its options, which are those below its own key as they are stored.
pub fn wanted(
    catalog: &Catalog,
    profile: &Profile,
    options: Option<&Map<String, Value>>,
    facts: &Facts,
) -> ProfileWants {
    items(catalog, profile, options, facts, |item| is_on(profile, item, options))
}

/// The items of a profile that is rolled back: all are off, also those that do not apply to this cluster any more.
pub fn rolled_back(
    catalog: &Catalog,
    profile: &Profile,
    options: Option<&Map<String, Value>>,
    facts: &Facts,
) -> ProfileWants {
    items(catalog, profile, options, facts, |_| false)
}

fn items(
    catalog: &Catalog,
    profile: &Profile,
    options: Option<&Map<String, Value>>,
    facts: &Facts,
    is_on: impl Fn(&ProfileItem) -> bool,
) -> ProfileWants {
    let (unaltered, facts) = (facts, overlaid(profile, options, facts));
    let renderer = Renderer::new(catalog, &facts);
    let item = |item: &ProfileItem| {
        let asset = catalog.profile_asset(&item.asset);
        let result = match asset {
            None => WantedResult::Broken(format!("the pack has no asset `{}`", item.asset)),
            Some(asset) if is_on(item) => {
                on(&renderer, asset, item, || default_key(catalog, profile, asset, unaltered))
            }
            Some(asset) => off(&renderer, asset, item, || default_key(catalog, profile, asset, unaltered)),
        };
        let impact = asset.map_or(Impact::Low, |asset| impact(asset, &result));
        let (name, description, needs) = (item.name.clone(), item.description.clone(), item.needs.clone());
        let former = former(item, &result);
        let is_former = key_of(&result).is_some_and(|key| item.formerly.as_ref() == Some(&key.name));
        let is_kept_kind = |key: &Key| api::NEVER_REMOVED.contains(&key.kind.kind.as_str());
        let is_never_deleted =
            asset.is_some_and(|asset| asset.prune == Prune::Never) || key_of(&result).is_some_and(is_kept_kind);
        let reports = asset.is_some_and(|asset| asset.reports);
        WantedItem { name, description, needs, impact, former, is_former, is_never_deleted, reports, result }
    };
    ProfileWants { items: profile.items.iter().map(item).collect(), inputs: inputs(profile, options, &facts) }
}

/// Everything that the items which are switched on need, and the cluster does not serve.
pub fn missing(catalog: &Catalog, profile: &Profile, options: Option<&Map<String, Value>>, facts: &Facts) -> Vec<Need> {
    let facts = overlaid(profile, options, facts);
    let mut missing = Vec::new();
    for item in profile.items.iter().filter(|item| is_on(profile, item, options)) {
        let Some(asset) = catalog.profile_asset(&item.asset) else { continue };
        if matches!(applies(asset, &facts), Applicability::Missing(_)) {
            missing.extend(Need::all_of(asset).filter(|need| facts.absent.contains(need)));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    missing.retain(|need| seen.insert(need.clone()));
    missing
}

fn is_on(profile: &Profile, item: &ProfileItem, written: Option<&Map<String, Value>>) -> bool {
    let is_true = |path: &String| is_true(profile, written, path);
    item.when.as_ref().is_none_or(is_true) && !item.unless.as_ref().is_some_and(is_true)
}

fn is_true(profile: &Profile, written: Option<&Map<String, Value>>, path: &str) -> bool {
    options::value(profile.options.as_ref(), written, path) == Some(Value::Bool(true))
}

/// The facts with the annotations that the options stand for, and no other of the autopilot.
fn overlaid(profile: &Profile, written: Option<&Map<String, Value>>, facts: &Facts) -> Facts {
    let mut facts = facts.clone();
    let mut annotations = match facts.hco.pointer_mut("/metadata/annotations").map(Value::take) {
        Some(Value::Object(annotations)) => annotations,
        _ => Map::new(),
    };
    annotations.retain(|key, _| !key.starts_with(PREFIX));
    for setting in &profile.settings {
        if setting.unless.as_ref().is_some_and(|path| is_true(profile, written, path)) {
            continue;
        }
        let value = match &setting.value {
            SettingValue::Fixed(value) => Some(value.clone()),
            SettingValue::Option(path) => {
                options::value(profile.options.as_ref(), written, path).as_ref().map(options::text)
            }
        };
        annotations.extend(value.map(|value| (setting.key.clone(), Value::String(value))));
    }
    // Without a HyperConverged its templates still read what the options say.
    if !facts.hco.is_object() {
        facts.hco = json!({});
    }
    if !facts.hco["metadata"].is_object() {
        facts.hco["metadata"] = json!({});
    }
    facts.hco["metadata"]["annotations"] = Value::Object(annotations);
    facts
}

fn inputs(profile: &Profile, written: Option<&Map<String, Value>>, facts: &Facts) -> Vec<ProfileInputValue> {
    let is_replaced = |path: &String| options::value(profile.options.as_ref(), written, path).is_some();
    let counts = profile.inputs.iter().filter(|input| !input.unless.as_ref().is_some_and(is_replaced));
    let value = |path: &String| {
        let found = path.split('.').try_fold(&facts.hco, |value, step| value.get(step));
        found.filter(|value| !value.is_null()).map(options::text)
    };
    counts
        .map(|input| ProfileInputValue {
            name: input.name.clone(),
            value: input.paths.iter().find_map(value).unwrap_or_else(|| NOT_SET.to_owned()),
        })
        .collect()
}

fn impact(asset: &Asset, result: &WantedResult) -> Impact {
    let least = asset.impact.unwrap_or(Impact::Low);
    match (result, &asset.kind) {
        (WantedResult::Object { key, object }, _) => {
            Impact::at_least(asset.impact, &key.kind.group, &key.kind.kind, object)
        }
        (WantedResult::Off { key: Some(key) }, _) => least.max(Impact::implied_by(&key.kind.group, &key.kind.kind)),
        (_, Some(kind)) => least.max(Impact::implied_by(&kind.group, &kind.kind)),
        (_, None) => least,
    }
}

fn on(
    renderer: &Renderer<'_>,
    asset: &Asset,
    item: &ProfileItem,
    default_key: impl FnOnce() -> Option<Key>,
) -> WantedResult {
    match applies(asset, renderer.facts) {
        Applicability::Applies => match renderer.render(asset) {
            Rendered::Object(object) => object_of(renderer.facts, object, item),
            Rendered::Empty => WantedResult::NotApplicable("there is nothing to write on this cluster".to_owned()),
            Rendered::NotApplicable(why) => WantedResult::NotApplicable(why),
            Rendered::Needs(queries) => WantedResult::Needs(queries),
            Rendered::Held(query) => WantedResult::Held(query),
            Rendered::Broken(why) => WantedResult::Broken(why),
        },
        Applicability::Not(unmet) => WantedResult::NotApplicable(unmet.to_string()),
        // What switches it on are the options of the profile.
        Applicability::NotAskedFor(_) => off(renderer, asset, item, default_key),
        Applicability::Missing(need) => WantedResult::Missing(need),
        Applicability::Needs(queries) => WantedResult::Needs(queries),
        Applicability::Held(query) => WantedResult::Held(query),
        Applicability::Broken(why) => WantedResult::Broken(why),
    }
}

fn object_of(facts: &Facts, mut object: Value, item: &ProfileItem) -> WantedResult {
    for field in ["labels", "annotations"] {
        match &mut object["metadata"][field] {
            Value::Null => {}
            Value::Object(map) => map.retain(|key, _| !key.starts_with(PREFIX)),
            _ => return WantedResult::Broken(format!("it renders metadata.{field} that is not a map")),
        }
        if object["metadata"][field].as_object().is_none_or(Map::is_empty)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove(field);
        }
    }
    let Some(key) = Key::of(&object) else {
        return WantedResult::Broken("it renders an object without a name".to_owned());
    };
    let need = Need::of(&key.kind);
    if facts.absent.contains(&need) {
        return WantedResult::Missing(need);
    }
    with_name(facts, key, item, |key| {
        object["metadata"]["name"] = key.name.as_str().into();
        WantedResult::Object { key, object }
    })
}

/// The object that an item wants, or that an option switches off.
fn key_of(result: &WantedResult) -> Option<&Key> {
    match result {
        WantedResult::Object { key, .. } | WantedResult::Off { key: Some(key) } => Some(key),
        _ => None,
    }
}

/// The object of an item, under its former name.
fn former(item: &ProfileItem, result: &WantedResult) -> Option<Key> {
    let key = key_of(result)?;
    item.formerly.as_ref().filter(|name| **name != key.name).map(|name| Key { name: name.clone(), ..key.clone() })
}

/// The result for a key, which has the name of the object's predecessor if only that exists.
fn with_name(facts: &Facts, key: Key, item: &ProfileItem, result: impl FnOnce(Key) -> WantedResult) -> WantedResult {
    let Some(formerly) = &item.formerly else { return result(key) };
    let old = Key { name: formerly.clone(), ..key.clone() };
    let query = Query::of(&old);
    match facts.answers.get(&query) {
        None => WantedResult::Needs(vec![query]),
        Some(Answer::Unknown) => WantedResult::Held(query),
        Some(Answer::Absent) => result(key),
        Some(Answer::Found(_)) => match facts.answers.get(&Query::of(&key)) {
            None => WantedResult::Needs(vec![Query::of(&key)]),
            Some(Answer::Unknown) => WantedResult::Held(Query::of(&key)),
            Some(Answer::Absent) => result(old),
            // Both do the same, and the former one goes.
            Some(Answer::Found(_)) => result(key),
        },
    }
}

/// The key of an asset's object with the default options: it does not depend on them, and others may be refused.
fn default_key(catalog: &Catalog, profile: &Profile, asset: &Asset, facts: &Facts) -> Option<Key> {
    match render(catalog, asset, &overlaid(profile, None, facts)) {
        Rendered::Object(object) => Key::of(&object),
        _ => None,
    }
}

/// An item that is switched off: only its key is of interest.
fn off(
    renderer: &Renderer<'_>,
    asset: &Asset,
    item: &ProfileItem,
    default_key: impl FnOnce() -> Option<Key>,
) -> WantedResult {
    let plain = renderer.catalog.plain_key(asset);
    let key = match renderer.render(asset) {
        Rendered::Object(object) => Key::of(&object),
        Rendered::Broken(_) => plain.or_else(default_key),
        Rendered::Needs(queries) if plain.is_none() => return WantedResult::Needs(queries),
        Rendered::Held(query) if plain.is_none() => return WantedResult::Held(query),
        _ => plain,
    };
    match key.filter(|key| !renderer.facts.absent.contains(&Need::of(&key.kind))) {
        Some(key) => with_name(renderer.facts, key, item, |key| WantedResult::Off { key: Some(key) }),
        None => WantedResult::Off { key: None },
    }
}

#[cfg(test)]
mod tests;

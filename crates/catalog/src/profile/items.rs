//! Reads and checks what a profile writes, with which settings and from which inputs.

use super::{ProfileInput, ProfileItem, ProfileOptions, ProfileSetting, SettingValue, options};
use crate::pack::catalog::Catalog;
use crate::pack::strict::{Entries, StrictReader, nearest};
use crate::yaml::node::YamlNode;
use api::annotation::PREFIX;
use serde_json::Value;
use std::collections::BTreeSet;

const ITEM_KEYS: [&str; 7] = ["name", "description", "asset", "when", "unless", "formerly", "needs"];
const SETTING_KEYS: [&str; 4] = ["key", "value", "option", "unless"];
const INPUT_KEYS: [&str; 3] = ["name", "paths", "unless"];

/// The parts of a profile beside its head and its options.
#[derive(Default)]
pub(super) struct Parts {
    pub items: Vec<ProfileItem>,
    pub settings: Vec<ProfileSetting>,
    pub inputs: Vec<ProfileInput>,
}

/// What the parts may refer to.
struct Known<'a> {
    options: Option<&'a ProfileOptions>,
    /// Nothing if it is not known as a whole.
    catalog: Option<&'a Catalog>,
}

pub(super) fn read(
    entries: &Entries<'_>,
    options: Option<&ProfileOptions>,
    catalog: Option<&Catalog>,
    strict: &mut StrictReader<'_>,
) -> Parts {
    let known = Known { options, catalog };
    let mut parts = Parts::default();
    let mut names = BTreeSet::new();
    for node in strict.items(entries, "items") {
        let Some(item) = item(node, &known, strict) else { continue };
        for needed in item.needs.iter().filter(|needed| !names.contains(*needed)) {
            strict.fault(node.line, format!("`{}` needs `{needed}`, which is no item before it", item.name));
        }
        if !names.insert(item.name.clone()) {
            strict.fault(node.line, format!("there are two items `{}`", item.name));
        }
        parts.items.push(item);
    }
    let mut keys = BTreeSet::new();
    for node in strict.items(entries, "settings") {
        let Some(setting) = setting(node, &known, strict) else { continue };
        if !keys.insert(setting.key.clone()) {
            strict.fault(node.line, format!("there are two settings `{}`", setting.key));
        }
        parts.settings.push(setting);
    }
    let mut names = BTreeSet::new();
    for node in strict.items(entries, "inputs") {
        let Some(input) = input(node, &known, strict) else { continue };
        if !names.insert(input.name.clone()) {
            strict.fault(node.line, format!("there are two inputs `{}`", input.name));
        }
        parts.inputs.push(input);
    }
    parts
}

fn item(node: &YamlNode, known: &Known<'_>, strict: &mut StrictReader<'_>) -> Option<ProfileItem> {
    let entries = strict.entries(node, "item", &ITEM_KEYS)?;
    let (name, description) = (strict.required(&entries, "name"), strict.required(&entries, "description"));
    let asset = strict.required(&entries, "asset");
    if let (Some(name), Some(catalog)) = (&asset, known.catalog)
        && catalog.profile_asset(name).is_none()
    {
        let assets: Vec<&str> = catalog.all_assets().map(|asset| asset.name.as_str()).collect();
        let hint = nearest(name, &assets).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        strict.fault(entries.line_of("asset"), format!("there is no asset `{name}`{hint}"));
    }
    let when = known.boolean(&entries, "when", strict);
    let unless = known.boolean(&entries, "unless", strict);
    let formerly = strict.optional(&entries, "formerly");
    let needs = strict.texts(&entries, "needs");
    Some(ProfileItem { name: name?, description: description?, asset: asset?, when, unless, formerly, needs })
}

fn setting(node: &YamlNode, known: &Known<'_>, strict: &mut StrictReader<'_>) -> Option<ProfileSetting> {
    let entries = strict.entries(node, "setting", &SETTING_KEYS)?;
    let key = strict.required(&entries, "key")?;
    if !key.starts_with(PREFIX) {
        strict.fault(entries.line_of("key"), format!("the key `{key}` must begin with {PREFIX}"));
    } else if let Some(catalog) = known.catalog
        && !catalog.annotations.contains(&key)
    {
        let keys: Vec<&str> = catalog.annotations.iter().map(String::as_str).collect();
        let hint = nearest(&key, &keys).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        strict.fault(entries.line_of("key"), format!("no asset reads `{key}`{hint}"));
    }
    let fixed = strict.optional(&entries, "value");
    let option = known.option(&entries, "option", strict);
    let value = match (fixed, option) {
        (Some(value), None) => SettingValue::Fixed(value),
        (None, Some((path, _))) => SettingValue::Option(path),
        _ => {
            strict.fault(node.line, "setting needs either `value` or an `option` of the profile");
            return None;
        }
    };
    Some(ProfileSetting { key, value, unless: known.boolean(&entries, "unless", strict) })
}

fn input(node: &YamlNode, known: &Known<'_>, strict: &mut StrictReader<'_>) -> Option<ProfileInput> {
    let entries = strict.entries(node, "input", &INPUT_KEYS)?;
    let name = strict.required(&entries, "name");
    let paths = strict.texts(&entries, "paths");
    if paths.is_empty() {
        strict.fault(entries.line_of("paths"), "input needs `paths`: where it is in the HyperConverged");
    }
    let unless = known.option(&entries, "unless", strict).map(|(path, _)| path);
    Some(ProfileInput { name: name?, paths, unless })
}

impl<'a> Known<'a> {
    /// The option that an entry names, which must be a boolean.
    fn boolean(&self, entries: &Entries<'_>, key: &str, strict: &mut StrictReader<'_>) -> Option<String> {
        let (path, schema) = self.option(entries, key, strict)?;
        if schema["type"] != "boolean" {
            strict.fault(
                entries.line_of(key),
                format!("`{key}` needs an option that is a boolean, and `{path}` is of type {}", schema["type"]),
            );
        }
        Some(path)
    }

    /// The option that an entry names, with its schema.
    fn option(&self, entries: &Entries<'_>, key: &str, strict: &mut StrictReader<'_>) -> Option<(String, &'a Value)> {
        let path = strict.optional(entries, key)?;
        let schema = self.options.and_then(|options| options::schema(options, &path));
        if schema.is_none() {
            let names: Vec<&str> =
                self.options.iter().flat_map(|all| all.properties.keys()).map(String::as_str).collect();
            let hint = nearest(&path, &names).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            strict.fault(entries.line_of(key), format!("the profile has no option `{path}`{hint}"));
        }
        schema.map(|schema| (path, schema))
    }
}

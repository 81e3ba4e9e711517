//! Reads the profiles of a pack.

use super::{OptionRule, Profile, ProfileOptions, items};
use crate::pack::catalog::Catalog;
use crate::pack::fault::Fault;
use crate::pack::strict::{Entries, StrictReader};
use crate::yaml::node::{self, Content, YamlNode};
use serde_json::{Map, Value};

const FOLDER: &str = "profiles/";
const PROFILE_KEYS: [&str; 9] =
    ["name", "category", "description", "impact_summary", "advertised", "options", "items", "settings", "inputs"];
const OPTION_KEYS: [&str; 3] = ["key", "properties", "rules"];
const RULE_KEYS: [&str; 2] = ["rule", "message"];
/// What the schema of an option needs at least.
const SCHEMA_KEYS: [&str; 2] = ["type", "description"];

/// Reads all profiles, in the order of their files.
/// What they name is looked up in the catalogue if that is whole.
pub(crate) fn read(catalog: &Catalog, is_whole: bool, faults: &mut Vec<Fault>) -> Vec<Profile> {
    let known = is_whole.then_some(catalog);
    let mut profiles: Vec<Profile> = Vec::new();
    for (file, content) in catalog.files.iter().filter(|(file, _)| file.starts_with(FOLDER)) {
        let mut strict = StrictReader::new(file);
        let documents = std::str::from_utf8(content).map_err(|_| (None, "it is not UTF-8 text".to_owned()));
        match documents.and_then(|text| node::documents(text).map_err(|fault| (fault.line, fault.message))) {
            Ok(documents) => match documents.as_slice() {
                [document] => {
                    let found = profile(document, known, &mut strict);
                    if let Some(Profile { name, .. }) = &found
                        && format!("{FOLDER}{name}.yaml") != file
                    {
                        strict.fault(1, format!("the profile `{name}` must be in the file {FOLDER}{name}.yaml"));
                    }
                    profiles.extend(found);
                }
                _ => strict.fault(1, "a file has one profile"),
            },
            Err((line, message)) => faults.push(Fault { file: file.to_owned(), line, message }),
        }
        faults.append(&mut strict.faults);
    }
    profiles
}

fn profile(document: &YamlNode, catalog: Option<&Catalog>, strict: &mut StrictReader<'_>) -> Option<Profile> {
    let entries = strict.entries(document, "profile", &PROFILE_KEYS)?;
    let mut text = |key: &str| strict.required(&entries, key);
    let (name, category, description) = (text("name"), text("category"), text("description"));
    let impact_summary = text("impact_summary");
    let is_advertised = match entries.get("advertised").map(|node| &node.content) {
        Some(Content::Bool(value)) => Some(*value),
        _ => {
            strict.fault(entries.line_of("advertised"), "profile needs `advertised`: true or false");
            None
        }
    };
    let options = match entries.get("options").map(|node| options(node, strict)) {
        Some(options) => Some(options?),
        None => None,
    };
    let parts = items::read(&entries, options.as_ref(), catalog, strict);
    Some(Profile {
        name: name?,
        category: category?,
        description: description?,
        impact_summary: impact_summary?,
        is_advertised: is_advertised?,
        options,
        items: parts.items,
        settings: parts.settings,
        inputs: parts.inputs,
    })
}

fn options(node: &YamlNode, strict: &mut StrictReader<'_>) -> Option<ProfileOptions> {
    let entries = strict.entries(node, "options", &OPTION_KEYS)?;
    let key = strict.required(&entries, "key");
    let properties = properties(&entries, strict);
    let rules = strict.items(&entries, "rules").iter().map(|node| rule(node, strict)).collect::<Option<Vec<_>>>();
    Some(ProfileOptions { key: key?, properties: properties?, rules: rules? })
}

fn properties(entries: &Entries<'_>, strict: &mut StrictReader<'_>) -> Option<Map<String, Value>> {
    let Some(YamlNode { content: Content::Map(map), .. }) = entries.get("properties") else {
        strict.fault(entries.line_of("properties"), "options need `properties`: a map of schemas");
        return None;
    };
    let mut properties = Map::new();
    for (name, line, schema) in map {
        let schema = schema.to_json();
        if let Some(missing) = SCHEMA_KEYS.iter().find(|key| !schema[**key].is_string()) {
            strict.fault(*line, format!("the option `{name}` needs `{missing}`"));
        }
        properties.insert(name.clone(), schema);
    }
    Some(properties)
}

fn rule(node: &YamlNode, strict: &mut StrictReader<'_>) -> Option<OptionRule> {
    let entries = strict.entries(node, "rule", &RULE_KEYS)?;
    let (rule, message) = (strict.required(&entries, "rule"), strict.required(&entries, "message"));
    Some(OptionRule { rule: rule?, message: message? })
}

#[cfg(test)]
mod tests {
    use crate::pack::catalog::Catalog;
    use crate::pack::test_pack::files;

    /// The faults of a pack with this profile.
    fn faults(profile: &str) -> Vec<String> {
        let metadata = "assets:
- {name: a, path: active/a.yaml, install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-a}]}
";
        let asset = ("active/a.yaml", "kind: X\n");
        let found = Catalog::load(files(&[("active/metadata.yaml", metadata), asset, ("profiles/p.yaml", profile)]));
        found.err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fault_of_a_profile_is_named_with_its_line() {
        let good = "name: p\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\n";
        assert_eq!(faults(good), [""; 0]);
        let options = "options: {key: k, properties: {open: {type: boolean, description: o}, size: {type: integer, description: s}, deep: {type: object, description: d, properties: {open: {type: boolean}}}}}";
        let with = |part: &str| format!("{good}{part}\n{options}\n");
        let parts = "items: [{name: i, description: d, asset: a, when: deep.open, formerly: old}, {name: j, description: d, asset: a, needs: [i]}]
settings: [{key: platform.kubevirt.io/enable-a, option: open}]
inputs: [{name: i, paths: [spec.a], unless: size}]";
        assert_eq!(faults(&with(parts)), [""; 0]);
        for (profile, fault) in [
            ("", "profiles/p.yaml:1: a file has one profile"),
            ("name: p\n", "profiles/p.yaml:1: profile needs `category`"),
            (
                "name: q\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\n",
                "the profile `q` must be in the file profiles/q.yaml",
            ),
            (
                &good.replace("advertised: true", "advertised: sometimes"),
                "profiles/p.yaml:5: profile needs `advertised`: true or false",
            ),
            (&good.replace("category", "categry"), "profile has an unknown key `categry`, did you mean `category`?"),
            (&format!("{good}options: {{key: k}}\n"), "profiles/p.yaml:6: options need `properties`: a map of schemas"),
            (
                &format!("{good}options:\n  key: k\n  properties:\n    size: {{type: integer}}\n"),
                "profiles/p.yaml:9: the option `size` needs `description`",
            ),
            (
                &format!("{good}options: {{key: k, properties: {{}}, rules: [{{rule: \"true\"}}]}}\n"),
                "profiles/p.yaml:6: rule needs `message`",
            ),
            ("{", "profiles/p.yaml"),
            (&with("items: [{name: i, description: d, asset: b}]"), "profiles/p.yaml:6: there is no asset `b`"),
            (&with("items: [{name: i, asset: a}]"), "profiles/p.yaml:6: item needs `description`"),
            (
                &with("items:\n- {name: i, description: d, asset: a}\n- {name: i, description: d, asset: a}"),
                "profiles/p.yaml:8: there are two items `i`",
            ),
            (
                &with(
                    "items:\n- {name: i, description: d, asset: a, needs: [j]}\n- {name: j, description: d, asset: a}",
                ),
                "profiles/p.yaml:7: `i` needs `j`, which is no item before it",
            ),
            (
                &with("items: [{name: i, description: d, asset: a, when: opens}]"),
                "the profile has no option `opens`, did you mean `open`?",
            ),
            (
                &with("items: [{name: i, description: d, asset: a, when: size}]"),
                "`when` needs an option that is a boolean, and `size` is of type \"integer\"",
            ),
            (
                &with("items: [{name: i, description: d, asset: a, unless: size}]"),
                "`unless` needs an option that is a boolean",
            ),
            (
                &with("items: [{name: i, description: d, asset: a, when: deep.none}]"),
                "the profile has no option `deep.none`",
            ),
            (
                &with("settings: [{key: platform.kubevirt.io/nobody, value: x}]"),
                "profiles/p.yaml:6: no asset reads `platform.kubevirt.io/nobody`",
            ),
            (&with("settings: [{key: other, value: x}]"), "the key `other` must begin with platform.kubevirt.io/"),
            (
                &with("settings: [{key: platform.kubevirt.io/enable-a}]"),
                "profiles/p.yaml:6: setting needs either `value` or an `option` of the profile",
            ),
            (
                &with("settings: [{key: platform.kubevirt.io/enable-a, value: x, option: open}]"),
                "setting needs either `value` or an `option`",
            ),
            (
                &with("settings: [{key: platform.kubevirt.io/enable-a, value: x, unless: size}]"),
                "`unless` needs an option that is a boolean",
            ),
            (
                &with("settings:\n- &s {key: platform.kubevirt.io/enable-a, option: open}\n- *s"),
                "there are two settings `platform.kubevirt.io/enable-a`",
            ),
            (&with("inputs: [{name: i}]"), "input needs `paths`: where it is in the HyperConverged"),
            (&with("inputs: [{name: i, paths: [spec.a], unless: sise}]"), "the profile has no option `sise`"),
            (&with("inputs:\n- &i {name: i, paths: [spec.a]}\n- *i"), "there are two inputs `i`"),
        ] {
            let found = faults(profile);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        }
    }

    #[test]
    fn a_catalogue_that_cannot_be_read_is_no_fault_of_a_profile() {
        let profile = "name: p\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true
items: [{name: i, description: d, asset: a}]\nsettings: [{key: platform.kubevirt.io/a, value: x}]\n";
        let found = Catalog::load(files(&[("active/metadata.yaml", "assets: {\n"), ("profiles/p.yaml", profile)]));
        let faults: Vec<String> = found.unwrap_err().iter().map(|fault| fault.file.clone()).collect();
        assert_eq!(faults, ["active/metadata.yaml"]);
    }
}

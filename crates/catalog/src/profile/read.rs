//! Reads the profiles of a pack.

use super::{OptionRule, Profile, ProfileOptions};
use crate::pack::fault::Fault;
use crate::pack::files::Files;
use crate::pack::strict::{Entries, StrictReader};
use crate::yaml::node::{self, Content, YamlNode};
use serde_json::{Map, Value};

const FOLDER: &str = "profiles/";
const PROFILE_KEYS: [&str; 6] = ["name", "category", "description", "impact_summary", "advertised", "options"];
const OPTION_KEYS: [&str; 3] = ["key", "properties", "rules"];
const RULE_KEYS: [&str; 2] = ["rule", "message"];
/// What the schema of an option needs at least.
const SCHEMA_KEYS: [&str; 2] = ["type", "description"];

/// Reads all profiles, in the order of their files.
pub(crate) fn read(files: &Files, faults: &mut Vec<Fault>) -> Vec<Profile> {
    let mut profiles: Vec<Profile> = Vec::new();
    for (file, content) in files.iter().filter(|(file, _)| file.starts_with(FOLDER)) {
        let mut strict = StrictReader::new(file);
        let documents = std::str::from_utf8(content).map_err(|_| (None, "it is not UTF-8 text".to_owned()));
        match documents.and_then(|text| node::documents(text).map_err(|fault| (fault.line, fault.message))) {
            Ok(documents) => match documents.as_slice() {
                [document] => {
                    let found = profile(document, &mut strict);
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

fn profile(document: &YamlNode, strict: &mut StrictReader<'_>) -> Option<Profile> {
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
    let options = entries.get("options").map(|node| options(node, strict));
    Some(Profile {
        name: name?,
        category: category?,
        description: description?,
        impact_summary: impact_summary?,
        is_advertised: is_advertised?,
        options: match options {
            Some(options) => Some(options?),
            None => None,
        },
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
        let found = Catalog::load(files(&[("active/metadata.yaml", "assets: []\n"), ("profiles/p.yaml", profile)]));
        found.err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fault_of_a_profile_is_named_with_its_line() {
        let good = "name: p\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\n";
        assert_eq!(faults(good), [""; 0]);
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
        ] {
            let found = faults(profile);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        }
    }
}

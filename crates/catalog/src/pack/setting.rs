//! Annotations of the HyperConverged that choose a value for assets, and the switches among the conditions.

use crate::pack::catalog::Catalog;
use crate::pack::condition::Condition;
use crate::pack::feature::Feature;
use serde::Serialize;

/// An annotation that templates read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its key, with the prefix.
    pub key: String,
    /// What may be written.
    pub values: String,
    /// What holds without it.
    pub default: String,
    /// The feature that reads it.
    pub feature: String,
    /// What it does.
    pub docs: String,
}

impl Setting {
    /// Whether it is true or false.
    pub fn is_boolean(&self) -> bool {
        self.values == BOOLEAN
    }
}

const BOOLEAN: &str = "true, false";

impl Catalog {
    /// Everything that users may set for this pack: the switches of features, then what the pack declares.
    pub fn all_settings(&self) -> Vec<Setting> {
        let mut all: Vec<Setting> = Vec::new();
        for asset in &self.assets {
            for condition in asset.conditions.iter().flat_map(Condition::leaves) {
                let Condition::Annotation { key, value } = condition else { continue };
                let is_listed = all.iter().chain(&self.settings).any(|setting| setting.key == *key);
                if is_listed {
                    continue;
                }
                let values = match value.as_deref() {
                    Some("true") => BOOLEAN.to_owned(),
                    Some(value) => value.to_owned(),
                    None => "any value".to_owned(),
                };
                let feature = self.features_of(asset).next();
                let name = |feature: &Feature| feature.name.clone();
                let docs = feature.map_or_else(|| asset.notes.docs.clone(), |feature| feature.description.clone());
                let feature = feature.map(name).unwrap_or_default();
                all.push(Setting { key: key.clone(), values, default: "false".to_owned(), feature, docs });
            }
        }
        all.sort_by(|one, two| one.key.cmp(&two.key));
        all.extend(self.settings.iter().cloned());
        all
    }
}

#[cfg(test)]
mod tests {
    use crate::pack::test_pack::{files, loaded};

    #[test]
    fn switches_of_conditions_and_declared_settings_are_listed_once() {
        let metadata = "assets:
- {name: a, path: active/a.yaml, install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-a, value: \"true\"}]}
- {name: b, path: active/a.yaml, install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-a, value: \"true\"}, {type: annotation, key: platform.kubevirt.io/size}]}
features:
- {name: f, description: Does F., assets: [a, b]}
settings:
- {name: size, value: a number, feature: f, docs: The size.}
";
        let catalog = loaded(files(&[("active/metadata.yaml", metadata), ("active/a.yaml", "kind: X\n")]));
        let all = catalog.all_settings();
        let rows: Vec<String> =
            all.iter().map(|row| format!("{} [{}] {} {}", row.key, row.values, row.feature, row.docs)).collect();
        assert_eq!(
            rows,
            [
                "platform.kubevirt.io/enable-a [true, false] f Does F.",
                "platform.kubevirt.io/size [a number] f The size.",
            ]
        );
    }
}

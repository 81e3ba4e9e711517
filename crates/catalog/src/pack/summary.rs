//! What people see of a feature: how mature it is, how it is switched on, and what it consists of.

use crate::pack::asset::{Asset, Install};
use crate::pack::catalog::Catalog;
use crate::pack::condition::Condition;
use crate::pack::feature::{Feature, Maturity};
use serde::Serialize;

/// A feature as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary<'a> {
    /// The name.
    pub name: &'a str,
    /// What it provides, in one sentence.
    pub description: &'a str,
    /// The maturity.
    pub maturity: Maturity,
    /// Whether it is on by default.
    pub install: Install,
    /// What switches it on, if it is not on by itself.
    pub opt_in: String,
    /// What it requires.
    pub requires: &'a [String],
    /// What is recommended with it.
    pub recommended: &'a [String],
}

/// All features, the mature ones first, then by name.
pub fn summaries(catalog: &Catalog) -> Vec<Summary<'_>> {
    let mut features: Vec<(Maturity, &Feature)> =
        catalog.features.iter().map(|feature| (maturity(catalog, feature), feature)).collect();
    features.sort_by_key(|(maturity, feature)| (*maturity, feature.name.as_str()));
    features.into_iter().map(|(maturity, feature)| summary(catalog, feature, maturity)).collect()
}

fn summary<'a>(catalog: &'a Catalog, feature: &'a Feature, maturity: Maturity) -> Summary<'a> {
    let is_opt_in = feature.opt_in.is_some() || assets(catalog, feature).any(|asset| asset.install == Install::OptIn);
    Summary {
        name: &feature.name,
        description: &feature.description,
        maturity,
        install: if is_opt_in { Install::OptIn } else { Install::Always },
        opt_in: feature.opt_in.clone().unwrap_or_else(|| opt_in(catalog, feature)),
        requires: &feature.requires,
        recommended: &feature.recommended,
    }
}

/// The assets of a feature, in the order of the catalogue.
pub fn assets<'a>(catalog: &'a Catalog, feature: &'a Feature) -> impl Iterator<Item = &'a Asset> {
    catalog.assets.iter().filter(|asset| feature.has(asset))
}

/// As declared; else a feature that has to be switched on is a developer preview.
fn maturity(catalog: &Catalog, feature: &Feature) -> Maturity {
    let is_opt_in = || assets(catalog, feature).any(|asset| asset.install == Install::OptIn);
    feature.maturity.unwrap_or_else(|| if is_opt_in() { Maturity::Dp } else { Maturity::Ga })
}

/// The settings of the HyperConverged that switch a feature on.
fn opt_in(catalog: &Catalog, feature: &Feature) -> String {
    let mut settings: Vec<String> = Vec::new();
    for condition in assets(catalog, feature).flat_map(|asset| &asset.conditions).flat_map(Condition::leaves) {
        let setting = match condition {
            Condition::Annotation { key, value } => {
                let key = key.strip_prefix(api::annotation::PREFIX).unwrap_or(key);
                value.as_ref().map_or_else(|| key.to_owned(), |value| format!("{key}: {value}"))
            }
            Condition::FeatureGate { value } => format!("feature gate {value}"),
            Condition::KubevirtFeatureGate { value } => format!("KubeVirt feature gate {value}"),
            Condition::HardwareDetection { .. }
            | Condition::Image { .. }
            | Condition::HcoFieldUnconfigured { .. }
            | Condition::Topology { .. }
            | Condition::Any { .. } => continue,
        };
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings.join(", ")
}

impl Maturity {
    /// Its abbreviation.
    pub fn short(self) -> &'static str {
        match self {
            Maturity::Ga => "GA",
            Maturity::Tp => "TP",
            Maturity::Dp => "DP",
        }
    }

    /// Its name.
    pub fn long(self) -> &'static str {
        match self {
            Maturity::Ga => "generally available",
            Maturity::Tp => "technology preview",
            Maturity::Dp => "developer preview",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Summary, assets, summaries};
    use crate::pack::test_pack::{files, loaded};

    #[test]
    fn a_feature_is_summarised_from_its_assets() {
        let metadata = "assets:
- {name: a, path: active/a.yaml, install: always}
- {name: b, group: g, path: active/a.yaml, install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-b, value: \"true\"}, {type: topology, field: isHCP}]}
- {name: c, group: g, path: active/a.yaml, install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-b, value: \"true\"}, {type: feature-gate, value: C}, {type: annotation, key: x}, {type: kubevirt-feature-gate, value: K}]}
features:
- {name: later, description: Two., groups: [g], requires: [r], recommended: [s]}
- {name: z, assets: [a], maturity: tp, opt_in: \"enable-z: true\"}
- {name: yet, assets: [a, b], maturity: ga}
- {name: basic, assets: [a]}
";
        let catalog = loaded(files(&[("active/metadata.yaml", metadata), ("active/a.yaml", "kind: X\n")]));
        let all = summaries(&catalog);
        let row = |summary: &Summary<'_>| {
            format!("{} {:?} {:?} [{}]", summary.name, summary.maturity, summary.install, summary.opt_in)
        };
        assert_eq!(
            all.iter().map(row).collect::<Vec<_>>(),
            [
                "basic Ga Always []",
                "yet Ga OptIn [enable-b: true]",
                "z Tp OptIn [enable-z: true]",
                "later Dp OptIn [enable-b: true, feature gate C, x, KubeVirt feature gate K]",
            ]
        );
        let listed = serde_json::to_value(&all[1]).unwrap();
        assert_eq!((&listed["maturity"], &listed["install"]), (&"GA".into(), &"opt-in".into()));
        let later = &all[3];
        assert_eq!(
            (later.description, later.requires, later.recommended),
            ("Two.", &["r".to_owned()][..], &["s".to_owned()][..])
        );
        let names: Vec<&str> = assets(&catalog, &catalog.features[0]).map(|asset| asset.name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
    }
}

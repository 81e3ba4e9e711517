//! `active/metadata.yaml` of the benchmark pack: eighty assets and their features.

use super::kinds::{EACH, KINDS, Kind};
use std::collections::BTreeMap;

/// The first line, which identifies a pack that may be overwritten.
pub(super) const HEADER: &str = "# Written by `cargo xtask gen-pack`, for benches and tests.\n";

/// The path of an object's template in the pack.
pub(super) fn path(kind: &Kind, object: usize) -> String {
    format!("active/{}/{}.yaml.tpl", kind.slug, kind.names[object])
}

/// The content of the file. Every asset is installed unconditionally, so that every cluster gets all of them.
pub(super) fn text() -> String {
    let mut text = format!("{HEADER}assets:\n");
    for kind in &KINDS {
        for object in 0..EACH {
            let (slug, name) = (kind.slug, kind.names[object]);
            text.push_str(&format!(
                "  - name: {slug}-{name}\n    group: {slug}\n    path: {}\n    phase: 1\n    install: always\n    \
                 component: {}\n    reconcile_order: {}\n    template_params:\n      name: \"{name}\"\n",
                path(kind, object),
                kind.kind,
                kind.order
            ));
            for (param, values) in kind.params {
                text.push_str(&format!("      {param}: \"{}\"\n", values[object]));
            }
            text.push_str("    conditions: []\n");
        }
    }
    let mut features: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in &KINDS {
        features.entry(kind.feature).or_default().push(kind.slug);
    }
    text.push_str("features:\n");
    for (feature, groups) in features {
        let words = feature.replace('-', " ");
        text.push_str(&format!(
            "  - name: {feature}\n    description: \"The size and shape of {words} on a real platform\"\n    groups: [{}]\n",
            groups.join(", ")
        ));
    }
    text + "framework:\n  maturity: tp\n"
}

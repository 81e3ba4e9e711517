//! The digest of an asset's definition, by which versions of a pack are distinguished.

use crate::pack::asset::Asset;
use crate::pack::files::Files;
use crate::pack::load::is_template;
use crate::template::{Parsed, names};
use sha2::{Digest, Sha256};

/// Enough bytes to distinguish the versions of one asset.
const BYTES: usize = 8;

/// The digest of an asset: its conditions, its parameters, its file, and the files that the template reads.
pub(super) fn source(files: &Files, asset: &Asset) -> String {
    let mut hasher = Sha256::new();
    // The length separates one part from the next.
    let mut feed = |part: &[u8]| {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    };
    let content = files.get(&asset.path).unwrap_or_default();
    feed(content);
    feed(format!("{:?}", (&asset.name, &asset.group, &asset.gate_crd, asset.install, &asset.conditions)).as_bytes());
    for (key, value) in &asset.template_params {
        feed(key.as_bytes());
        feed(value.as_bytes());
    }
    let text = std::str::from_utf8(content).ok().filter(|_| is_template(&asset.path));
    if let Some(parsed) = text.and_then(|text| Parsed::read(text).ok()) {
        for (_, (function, texts)) in names::constant_calls(&parsed) {
            if let ("readAsset", [path]) = (function.as_str(), texts.as_slice()) {
                feed(files.get(&format!("active/{path}")).unwrap_or_default());
            }
        }
    }
    hasher.finalize()[..BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::pack::test_pack::{files, loaded};

    #[test]
    fn a_changed_template_file_or_parameter_changes_the_source() {
        let template = "data: {{ readAsset \"script\" }} {{ .Params.role }}";
        let of = |template: &str, script: &str, role: &str| {
            let entry = format!(
                "assets: [{{name: a, path: active/a.yaml.tpl, install: always, component: X, reconcile_order: 1, template_params: {{role: {role}}}}}]\nexcluded_assets: [a]\n"
            );
            let mut catalog = loaded(files(&[
                ("active/metadata.yaml", &entry),
                ("active/a.yaml.tpl", template),
                ("active/script", script),
            ]));
            catalog.assets.remove(0).source
        };
        let before = of(template, "one", "worker");
        assert_eq!(before, of(template, "one", "worker"));
        let others = [
            of("data: {{ readAsset \"script\" }}", "one", "worker"),
            of(template, "two", "worker"),
            of(template, "one", "master"),
        ];
        assert!(others.iter().all(|other| *other != before), "{others:?}");
    }
}

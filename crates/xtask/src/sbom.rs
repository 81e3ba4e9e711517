//! The bill of materials of the `virtpilot` binary: a CycloneDX document made from `Cargo.lock`.

use crate::workspace::Workspace;
use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

/// A package in `Cargo.lock`.
#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Locked {
    /// Its package URL. Our own crates are not published, so they have none of a registry.
    fn url(&self) -> String {
        let kind = if self.source.is_some() { "cargo" } else { "generic" };
        format!("pkg:{kind}/{}@{}", self.name, self.version)
    }
}

/// The document. It has no time and no serial number, so that the same sources give the same document.
pub(crate) fn text(workspace: &Workspace) -> anyhow::Result<String> {
    let lock: Lock = toml::from_str(&workspace.read("Cargo.lock")?).context("could not parse Cargo.lock")?;
    let linked = linked(&workspace.normal_tree("operator")?);
    let licence = |package: &Locked| {
        let known = workspace.packages.iter();
        let mut known = known.filter(|other| other.name == package.name && other.version == package.version);
        known.find_map(|other| other.license.clone())
    };
    Ok(format!("{:#}\n", document(&lock, &linked, licence)))
}

/// The names and versions in the output of `cargo tree --prefix=none --format={p}`.
fn linked(tree: &str) -> BTreeSet<(String, String)> {
    let package = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    tree.lines().filter_map(package).collect()
}

fn document(lock: &Lock, linked: &BTreeSet<(String, String)>, licence: impl Fn(&Locked) -> Option<String>) -> Value {
    let packages: Vec<&Locked> = lock
        .package
        .iter()
        .filter(|package| linked.contains(&(package.name.clone(), package.version.clone())))
        .collect();
    // An entry is a name, and a version if several are locked.
    let find = |entry: &String| {
        let (name, version) =
            entry.split_once(' ').map_or((entry.as_str(), None), |(name, version)| (name, Some(version)));
        let is_it =
            |package: &&&Locked| package.name == name && version.is_none_or(|version| package.version == version);
        packages.iter().find(is_it).map(|package| package.url())
    };
    let component = |package: &&Locked| {
        let url = package.url();
        let mut component =
            json!({"type": "library", "bom-ref": url, "name": package.name, "version": package.version, "purl": url});
        if let Some(checksum) = &package.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        if let Some(licence) = licence(package) {
            // Older crates separate licences by a slash, which is not SPDX.
            component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
        }
        component
    };
    let (own, others): (Vec<&Locked>, Vec<&Locked>) = packages.iter().partition(|package| package.name == "operator");
    let main = own.first().map(component).map(|mut main| {
        (main["type"], main["name"]) = (json!("application"), json!("virtpilot"));
        main
    });
    let edges = |package: &&Locked| {
        let uses: Vec<String> = package.dependencies.iter().filter_map(find).collect();
        json!({"ref": package.url(), "dependsOn": uses})
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": others.iter().map(component).collect::<Vec<_>>(),
        "dependencies": packages.iter().map(edges).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Lock, document, linked};
    use serde_json::json;

    #[test]
    fn a_document_has_what_is_linked_and_who_uses_it() {
        let lock: Lock = toml::from_str(
            r#"
            [[package]]
            name = "operator"
            version = "0.1.0"
            dependencies = ["a 2.0.0", "tool"]
            [[package]]
            name = "a"
            version = "1.0.0"
            source = "registry"
            [[package]]
            name = "a"
            version = "2.0.0"
            source = "registry"
            checksum = "ab"
            [[package]]
            name = "tool"
            version = "1.0.0"
            source = "registry"
            "#,
        )
        .unwrap();
        let found = document(&lock, &linked("operator v0.1.0 (/x)\na v2.0.0\na v2.0.0 (*)\n"), |package| {
            (package.name == "a").then(|| "MIT/Apache-2.0".to_owned())
        });
        let (own, other) = ("pkg:generic/operator@0.1.0", "pkg:cargo/a@2.0.0");
        assert_eq!(found["metadata"]["component"]["name"], "virtpilot");
        assert_eq!(
            found["components"],
            json!([{"type": "library", "bom-ref": other, "name": "a", "version": "2.0.0", "purl": other,
                "hashes": [{"alg": "SHA-256", "content": "ab"}], "licenses": [{"expression": "MIT OR Apache-2.0"}]}])
        );
        assert_eq!(found["dependencies"], json!([{"ref": own, "dependsOn": [other]}, {"ref": other, "dependsOn": []}]));
    }
}

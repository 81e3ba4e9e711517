//! Every crate inherits the workspace's lints and licence, and there are few integration test programs.

use crate::workspace::Workspace;
use toml::Table;

/// Every test program links all dependencies, so more of them only cost build time.
const INTEGRATION_PROGRAMS: usize = 4;

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in workspace.own() {
        let path = format!("crates/{}/Cargo.toml", package.name);
        violations.extend(of_manifest(&path, &toml::from_str(&workspace.read(&path)?)?));
    }
    let programs: Vec<String> = workspace
        .own()
        .flat_map(|package| package.targets.iter().map(move |target| (package, target)))
        .filter(|(_, target)| target.kind.iter().any(|kind| kind == "test"))
        .map(|(package, target)| format!("{}/{}", package.name, target.name))
        .collect();
    if programs.len() > INTEGRATION_PROGRAMS {
        violations.push(format!(
            "there are {} integration test programs, more than {INTEGRATION_PROGRAMS}: {}",
            programs.len(),
            programs.join(", ")
        ));
    }
    let files =
        workspace.files.iter().filter(|file| file.ends_with("rust-toolchain.toml") || file.ends_with("rust-toolchain"));
    violations.extend(files.map(|file| format!("{file}: do not pin a toolchain; CI has only the installed one")));
    Ok(violations)
}

fn of_manifest(path: &str, manifest: &Table) -> Vec<String> {
    let inherits = |section: &str, key: &str| {
        let value =
            manifest.get(section).and_then(|section| if key.is_empty() { Some(section) } else { section.get(key) });
        value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
    };
    [("lints", ""), ("package", "license"), ("package", "edition"), ("package", "rust-version")]
        .into_iter()
        .filter(|(section, key)| !inherits(section, key))
        .map(|(section, key)| format!("{path}: [{section}] {key} is not inherited from the workspace"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::of_manifest;

    #[test]
    fn every_crate_inherits_the_lints_of_the_workspace() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_manifest_that_does_not_inherit_is_reported() {
        let good = "package = { license.workspace = true, edition.workspace = true, rust-version.workspace = true }\n\
                    lints.workspace = true\n";
        assert!(of_manifest("a", &toml::from_str(good).unwrap()).is_empty());
        let bad = "package = { license = \"MIT\", edition.workspace = true, rust-version.workspace = true }\n";
        assert_eq!(of_manifest("a", &toml::from_str(bad).unwrap()).len(), 2);
    }
}

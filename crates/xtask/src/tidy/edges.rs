//! Crates depend only on the crates that their layer allows.

use crate::layers;
use crate::workspace::{Dependency, Package, Workspace};

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    Ok(workspace.own().flat_map(of_package).collect())
}

fn of_package(package: &Package) -> Vec<String> {
    let Some(layer) = layers::find(&package.name) else {
        return vec![format!("crate {} is missing in crates/xtask/src/layers.rs", package.name)];
    };
    let allowed =
        |dependency: &&Dependency| layer.may_depend_on(&dependency.name, dependency.kind.as_deref() == Some("dev"));
    let own = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    own.filter(|dependency| !allowed(dependency))
        .map(|dependency| {
            format!("crate {} ({}) may not depend on {}", package.name, layer.role.label(), dependency.name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::of_package;
    use crate::workspace::{Dependency, Package};

    #[test]
    fn edges_between_crates_are_the_allowed_ones() {
        super::super::expect_none(super::check);
    }

    fn package(name: &str, uses: &str, kind: Option<&str>) -> Package {
        let dependency = Dependency { name: uses.into(), kind: kind.map(str::to_owned), path: Some(uses.into()) };
        let (version, dependencies) = ("0.1.0".into(), vec![dependency]);
        Package { name: name.into(), version, license: None, source: None, dependencies, targets: Vec::new() }
    }

    #[test]
    fn a_forbidden_edge_is_reported() {
        assert_eq!(of_package(&package("api", "change", None)), ["crate api (NOUNS) may not depend on change"]);
        assert_eq!(
            of_package(&package("operator", "playground", None)),
            ["crate operator (DO) may not depend on playground"]
        );
        assert_eq!(of_package(&package("operator", "playground", Some("dev"))), [""; 0]);
        assert_eq!(of_package(&package("autopilot", "mco-stand-in", Some("dev"))), [""; 0]);
        for (user, kind) in [("autopilot", None), ("operator", Some("dev")), ("change", Some("dev"))] {
            assert_eq!(of_package(&package(user, "mco-stand-in", kind)).len(), 1, "{user} {kind:?}");
        }
        assert_eq!(
            of_package(&package("extra", "api", None)),
            ["crate extra is missing in crates/xtask/src/layers.rs"]
        );
    }
}

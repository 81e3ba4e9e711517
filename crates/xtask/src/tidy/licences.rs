//! All dependencies have licences that are compatible with Apache-2.0.

use crate::workspace::{Package, Workspace};
use spdx::{Expression, ParseMode};

/// The allowed licences, by their SPDX identifiers.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    Ok(workspace.packages.iter().filter_map(of_package).collect())
}

fn of_package(package: &Package) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    let Some(licence) = &package.license else {
        return Some(format!("{name} has no licence"));
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Err(_) => Some(format!("{name} has an invalid licence expression: {licence}")),
        Ok(expression) => {
            let is_allowed = expression
                .evaluate(|requirement| requirement.license.id().is_some_and(|id| ALLOWED.contains(&id.name)));
            (!is_allowed).then(|| format!("{name} is licensed under {licence}, which is not allowed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_package;
    use crate::workspace::Package;

    #[test]
    fn all_licences_are_allowed() {
        super::super::expect_none(super::check);
    }

    fn is_reported(licence: Option<&str>) -> bool {
        let (name, version, license) = ("x".into(), "1.0.0".into(), licence.map(str::to_owned));
        of_package(&Package { name, version, license, source: None, dependencies: Vec::new(), targets: Vec::new() })
            .is_some()
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_reported() {
        assert!(!is_reported(Some("MIT/Apache-2.0")));
        assert!(!is_reported(Some("GPL-3.0-only OR MIT")));
        assert!(!is_reported(Some("Apache-2.0 WITH LLVM-exception")));
        assert!(is_reported(Some("GPL-3.0-only AND MIT")));
        assert!(is_reported(Some("who knows")));
        assert!(is_reported(None));
    }
}

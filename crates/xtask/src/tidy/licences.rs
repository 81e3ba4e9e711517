//! Everything we build with may be shipped under Apache-2.0.

use crate::workspace::{Package, Workspace};
use spdx::{Expression, ParseMode};

/// Permissive licences, by their SPDX names.
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
        return Some(format!("{name} names no licence"));
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Err(_) => Some(format!("{name} has a licence that cannot be read: {licence}")),
        Ok(expression) => {
            let fits = expression.evaluate(|wanted| wanted.license.id().is_some_and(|id| ALLOWED.contains(&id.name)));
            (!fits).then(|| format!("{name} is under {licence}, which is not on the list"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of_package;
    use crate::workspace::Package;

    #[test]
    fn licences_are_on_the_list() {
        super::super::expect_none(super::check);
    }

    fn complaint(licence: Option<&str>) -> bool {
        let (name, version, license) = ("x".into(), "1.0.0".into(), licence.map(str::to_owned));
        of_package(&Package { name, version, license, source: None, dependencies: Vec::new(), targets: Vec::new() })
            .is_some()
    }

    #[test]
    fn a_licence_that_does_not_fit_is_seen() {
        assert!(!complaint(Some("MIT/Apache-2.0")));
        assert!(!complaint(Some("GPL-3.0-only OR MIT")));
        assert!(!complaint(Some("Apache-2.0 WITH LLVM-exception")));
        assert!(complaint(Some("GPL-3.0-only AND MIT")));
        assert!(complaint(Some("who knows")));
        assert!(complaint(None));
    }
}

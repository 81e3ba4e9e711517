//! Checks of the rules in ARCHITECTURE.md. Each check returns the violations it finds.

mod current;
mod edges;
mod headers;
mod invariants;
mod licences;
mod links;
mod manifests;
mod names;
mod neutrality;
mod permits;
mod purity;
mod wiring;
mod words;

use crate::workspace::Workspace;

/// The violations of all checks.
pub(crate) fn all(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let checks = [
        current::check,
        edges::check,
        headers::check,
        invariants::check,
        licences::check,
        links::check,
        manifests::check,
        names::check,
        neutrality::check,
        permits::check,
        purity::check,
        wiring::check,
        words::check,
    ];
    let mut violations = Vec::new();
    for check in checks {
        violations.extend(check(workspace)?);
    }
    Ok(violations)
}

/// Fails a test if a check finds violations.
#[cfg(test)]
fn expect_none(check: fn(&Workspace) -> anyhow::Result<Vec<String>>) {
    let violations = check(&Workspace::load().unwrap()).unwrap();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

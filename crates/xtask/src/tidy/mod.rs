//! What the architecture promises, checked. Each check returns its complaints; none is good.

mod current;
mod edges;
mod headers;
mod invariants;
mod licences;
mod links;
mod manifests;
mod names;
mod purity;

use crate::workspace::Workspace;

/// All complaints.
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
        purity::check,
    ];
    let mut complaints = Vec::new();
    for check in checks {
        complaints.extend(check(workspace)?);
    }
    Ok(complaints)
}

/// Fails a test with the complaints of a check.
#[cfg(test)]
fn expect_none(check: fn(&Workspace) -> anyhow::Result<Vec<String>>) {
    let complaints = check(&Workspace::load().unwrap()).unwrap();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

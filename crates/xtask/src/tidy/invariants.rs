//! Every invariant in ARCHITECTURE.md names a test that exists.

use crate::workspace::Workspace;
use std::collections::BTreeSet;

const PATH: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Invariants";

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut tests = BTreeSet::new();
    for path in workspace.files_ending(".rs") {
        tests.extend(tests_in(&workspace.read(path)?));
    }
    Ok(of_text(&workspace.read(PATH)?, &tests))
}

fn of_text(text: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let Some((_, section)) = text.split_once(HEADING) else {
        return vec![format!("{PATH} has no section {HEADING:?}")];
    };
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    if rows.is_empty() {
        return vec![format!("{PATH} has no table under {HEADING:?}")];
    }
    let mut violations = Vec::new();
    for row in rows {
        let tests_cell = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> = tests_cell.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            violations.push(format!("{PATH}: this invariant names no test: {row}"));
        }
        let missing = named.into_iter().filter(|name| !tests.contains(*name));
        violations.extend(missing.map(|name| format!("{PATH} names the test {name}, which does not exist")));
    }
    violations
}

/// The names of the test functions in a source file.
fn tests_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut attribute = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            attribute = true;
        } else if let Some((_, rest)) = line.split_once("fn ")
            && attribute
        {
            found.extend(rest.split_once('(').map(|(name, _)| name.to_owned()));
            attribute = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{of_text, tests_in};
    use std::collections::BTreeSet;

    #[test]
    fn every_invariant_names_a_test_that_exists() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn an_invariant_without_an_existing_test_is_reported() {
        let source = format!("#[{}]\nasync fn it_holds() {{\nfn other() {{\n", "tokio::test(flavor = \"x\")");
        let tests: BTreeSet<String> = tests_in(&source).into_iter().collect();
        assert_eq!(tests, BTreeSet::from(["it_holds".to_owned()]));
        let table = |name: &str| {
            format!("## Invariants\n\n| what | held by |\n|---|---|\n| a | {name} |\n\n## Next\n| b | c |\n")
        };
        assert!(of_text(&table("`it_holds`"), &tests).is_empty());
        assert_eq!(of_text(&table("`gone`"), &tests).len(), 1);
        assert_eq!(of_text(&table("none"), &tests).len(), 1);
        assert_eq!(of_text("# Nothing", &tests).len(), 1);
    }
}

//! Mutants and what became of them, as cargo-mutants writes them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// One small change of the sources.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Mutant {
    /// Place and change, such as `a.rs:3:5: replace < with > in f`.
    pub(super) name: String,
    /// The crate it changes.
    pub(super) package: String,
    /// The file it changes.
    pub(super) file: String,
}

impl Mutant {
    /// The change without line and column, which move with every edit of the file.
    fn change(&self) -> String {
        let change = self.name.strip_prefix(&self.file).and_then(|place| place.splitn(4, ':').nth(3));
        format!("{}:{}", self.file, change.unwrap_or(&self.name))
    }
}

/// A name for each mutant that survives edits elsewhere in its file. Equal changes are counted: `(2 of 3)`.
pub(super) fn lasting_names(mutants: &[Mutant]) -> BTreeMap<&str, String> {
    let mut equal: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for mutant in mutants {
        equal.entry(mutant.change()).or_default().push(&mutant.name);
    }
    let named = equal.into_iter().flat_map(|(change, names)| {
        let count = names.len();
        names.into_iter().enumerate().map(move |(index, name)| match count {
            1 => (name, change.clone()),
            _ => (name, format!("{change} ({} of {count})", index + 1)),
        })
    });
    named.collect()
}

/// What the tests said about one mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Fate {
    /// A test failed.
    #[serde(rename = "CaughtMutant")]
    Caught,
    /// No test ended in time.
    Timeout,
    /// No test failed.
    #[serde(rename = "MissedMutant")]
    Missed,
    /// It does not compile.
    Unviable,
    /// A run without a mutant.
    #[serde(other)]
    Other,
}

/// The file with all outcomes.
#[derive(Debug, Deserialize)]
pub(super) struct Outcomes {
    outcomes: Vec<Outcome>,
}

#[derive(Debug, Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: Fate,
}

#[derive(Debug, Deserialize)]
enum Scenario {
    /// The sources as they are.
    Baseline,
    Mutant(Mutant),
}

impl Outcomes {
    /// Every mutant that was tested.
    pub(super) fn tested(&self) -> Vec<(&Mutant, Fate)> {
        let tested = self.outcomes.iter().filter_map(|outcome| match &outcome.scenario {
            Scenario::Mutant(mutant) => Some((mutant, outcome.summary)),
            Scenario::Baseline => None,
        });
        tested.collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Fate, Mutant, Outcomes, lasting_names};

    pub(in crate::mutants) fn mutant(place: &str, change: &str) -> Mutant {
        let file = place.split(':').next().unwrap();
        Mutant { name: format!("{place}: {change}"), package: "p".into(), file: file.into() }
    }

    #[test]
    fn a_name_survives_edits_elsewhere_and_equal_changes_are_counted() {
        let mutants = [
            mutant("a.rs:3:5", "replace < with > in A::f"),
            mutant("a.rs:3:9", "replace < with > in A::f"),
            mutant("b.rs:1:1", "replace < with > in A::f"),
        ];
        let names: Vec<String> = lasting_names(&mutants).into_values().collect();
        assert_eq!(
            names,
            [
                "a.rs: replace < with > in A::f (1 of 2)",
                "a.rs: replace < with > in A::f (2 of 2)",
                "b.rs: replace < with > in A::f"
            ]
        );
    }

    #[test]
    fn the_outcomes_of_cargo_mutants_are_read() {
        let text = r#"{"outcomes": [{"scenario": "Baseline", "summary": "Success"},
            {"scenario": {"Mutant": {"name": "a.rs:1:1: x", "package": "p", "file": "a.rs", "genre": "y"}}, "summary": "MissedMutant"}]}"#;
        let outcomes: Outcomes = serde_json::from_str(text).unwrap();
        assert_eq!(outcomes.tested(), [(&mutant("a.rs:1:1", "x"), Fate::Missed)]);
    }
}

//! Mutants that behave like the code they change, so that no test can tell them apart, each with the reason.

use super::mutant::{Mutant, lasting_names};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};

/// The list.
pub(super) const FILE: &str = "crates/xtask/equivalent_mutants.toml";

/// The reasons by the lasting names of mutants.
#[derive(Debug, Default)]
pub(super) struct Equivalents(BTreeMap<String, String>);

impl Equivalents {
    pub(super) fn parse(text: &str) -> anyhow::Result<Equivalents> {
        let entries: BTreeMap<String, String> =
            toml::from_str(text).with_context(|| format!("could not read {FILE}"))?;
        if let Some((name, _)) = entries.iter().find(|(_, why)| why.trim().is_empty()) {
            bail!("{FILE}: {name:?} has no reason");
        }
        Ok(Equivalents(entries))
    }

    /// An entry for a mutant that does not exist any more would hide the next one of its name.
    pub(super) fn check(&self, mutants: &[Mutant]) -> anyhow::Result<()> {
        let names: BTreeSet<String> = lasting_names(mutants).into_values().collect();
        let stale: Vec<&str> = self.0.keys().filter(|name| !names.contains(*name)).map(String::as_str).collect();
        match stale.as_slice() {
            [] => Ok(()),
            _ => bail!("{FILE} names mutants that do not exist any more:\n  {}", stale.join("\n  ")),
        }
    }

    pub(super) fn contains(&self, lasting_name: &str) -> bool {
        self.0.contains_key(lasting_name)
    }
}

#[cfg(test)]
mod tests {
    use super::Equivalents;
    use crate::mutants::mutant::tests::mutant;

    #[test]
    fn every_entry_has_a_reason_and_a_mutant() {
        let mutants = [mutant("a.rs:3:5", "replace < with <= in f")];
        let checked = |text: &str| Equivalents::parse(text).and_then(|equivalents| equivalents.check(&mutants));
        assert!(checked("\"a.rs: replace < with <= in f\" = \"they are never equal\"").is_ok());
        assert!(checked("\"a.rs: replace < with <= in f\" = \" \"").is_err(), "no reason");
        assert!(checked("\"a.rs: replace < with <= in g\" = \"they are never equal\"").is_err(), "no mutant");
    }
}

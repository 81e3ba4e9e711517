//! How many mutants the tests caught, by crate, and the names of the others.

use super::equivalent::{Equivalents, FILE};
use super::mutant::{Fate, Mutant, lasting_names};
use anyhow::bail;
use std::collections::BTreeMap;
use std::fmt;

/// The least share of mutants, in percent, that the tests of a crate must catch.
const LEAST: f64 = 96.0;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Report {
    crates: BTreeMap<String, Counts>,
    /// Mutants that no test caught, each with its lasting name.
    missed: Vec<(String, String)>,
    /// Mutants that are listed as equivalent, although a test caught them.
    not_equivalent: Vec<String>,
}

/// The mutants of one crate that compile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    caught: usize,
    equivalent: usize,
    missed: usize,
}

impl Counts {
    fn viable(&self) -> usize {
        self.caught + self.equivalent + self.missed
    }

    /// Of those that can be caught.
    fn percentage(&self) -> f64 {
        match self.caught + self.missed {
            0 => 100.0,
            all => self.caught as f64 * 100.0 / all as f64,
        }
    }
}

impl Report {
    /// The report on the tested ones of all mutants.
    pub(super) fn of(all: &[Mutant], tested: &[(&Mutant, Fate)], equivalents: &Equivalents) -> Report {
        let (names, mut report) = (lasting_names(all), Report::default());
        for (mutant, fate) in tested {
            let name = names.get(mutant.name.as_str()).unwrap_or(&mutant.name);
            let counts = report.crates.entry(mutant.package.clone()).or_default();
            match (fate, equivalents.contains(name)) {
                (Fate::Unviable, _) => {}
                (Fate::Missed, true) => counts.equivalent += 1,
                (Fate::Missed, false) => {
                    counts.missed += 1;
                    report.missed.push((mutant.name.clone(), name.clone()));
                }
                (Fate::Caught | Fate::Timeout, is_listed) => {
                    counts.caught += 1;
                    report.not_equivalent.extend(is_listed.then(|| name.clone()));
                }
            }
        }
        report
    }

    /// Fails if too few mutants were caught or the list of equivalent ones is wrong.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if !self.not_equivalent.is_empty() {
            bail!("{FILE} names mutants that a test catches:\n  {}", self.not_equivalent.join("\n  "));
        }
        let few = self.crates.iter().filter(|(_, counts)| counts.percentage() < LEAST);
        let few: Vec<&str> = few.map(|(name, _)| name.as_str()).collect();
        match few.as_slice() {
            [] => Ok(()),
            _ => bail!("the tests of {} catch less than {LEAST} % of the mutants", few.join(", ")),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.missed.is_empty() {
            writeln!(f, "missed, to be caught by a test or listed with a reason in {FILE}:")?;
        }
        for (name, lasting) in &self.missed {
            writeln!(f, "  {name}\n    {lasting:?}")?;
        }
        writeln!(
            f,
            "{:<12} {:>8} {:>8} {:>12} {:>8} {:>8}",
            "CRATE", "VIABLE", "CAUGHT", "EQUIVALENT", "MISSED", "CAUGHT"
        )?;
        for (name, counts) in &self.crates {
            let Counts { caught, equivalent, missed } = counts;
            let (viable, percentage) = (counts.viable(), counts.percentage());
            writeln!(f, "{name:<12} {viable:>8} {caught:>8} {equivalent:>12} {missed:>8} {percentage:>6.1} %")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Report};
    use crate::mutants::equivalent::Equivalents;
    use crate::mutants::mutant::tests::mutant;
    use crate::mutants::mutant::{Fate, Mutant};

    fn mutants(count: usize) -> Vec<Mutant> {
        (0..count).map(|line| mutant(&format!("a.rs:{line}:1"), &format!("change {line}"))).collect()
    }

    fn report(mutants: &[Mutant], fate: impl Fn(usize) -> Fate, equivalents: &str) -> Report {
        let tested: Vec<(&Mutant, Fate)> =
            mutants.iter().enumerate().map(|(index, mutant)| (mutant, fate(index))).collect();
        Report::of(mutants, &tested, &Equivalents::parse(equivalents).unwrap())
    }

    #[test]
    fn mutants_that_do_not_compile_or_are_equivalent_do_not_count() {
        let fates = [Fate::Caught, Fate::Timeout, Fate::Missed, Fate::Unviable];
        let report = report(&mutants(4), |index| fates[index], "\"a.rs: change 2\" = \"a reason\"");
        assert_eq!(report.crates["p"], Counts { caught: 2, equivalent: 1, missed: 0 });
        assert!(report.check().is_ok());
        assert!(
            report.to_string().ends_with("p                   3        2            1        0  100.0 %\n"),
            "{report}"
        );
    }

    #[test]
    fn less_than_96_percent_is_an_error() {
        let missed =
            |count: usize| report(&mutants(100), |index| if index < count { Fate::Missed } else { Fate::Caught }, "");
        assert!(missed(4).check().is_ok() && missed(5).check().is_err());
        assert!(missed(1).to_string().contains("\n  a.rs:0:1: change 0\n    \"a.rs: change 0\"\n"));
    }

    #[test]
    fn a_mutant_that_is_caught_is_not_equivalent() {
        let report = report(&mutants(1), |_| Fate::Caught, "\"a.rs: change 0\" = \"a reason\"");
        assert!(report.check().is_err());
    }
}

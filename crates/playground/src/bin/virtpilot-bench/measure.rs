//! One thing measured once or many times.

use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Measure {
    name: String,
    unit: &'static str,
    rounds: usize,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl Measure {
    pub(crate) fn of(name: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Measure {
        values.sort_by(f64::total_cmp);
        let at = |part: usize| {
            values.get((values.len() * part).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
        };
        let rounds = values.len();
        Measure { name: name.into(), unit, rounds, p50: at(50), p90: at(90), p99: at(99), max: at(100) }
    }

    pub(crate) fn one(name: impl Into<String>, unit: &'static str, value: f64) -> Measure {
        Measure::of(name, unit, vec![value])
    }

    pub(crate) fn count(name: impl Into<String>, number: usize) -> Measure {
        Measure::one(name, "count", count(number))
    }

    /// How this one's median and 99th percentile compare with another's.
    pub(crate) fn beside(&self, limit: &Measure, name: &str) -> Measure {
        let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 0.0 };
        let (p50, p99) = (ratio(self.p50, limit.p50), ratio(self.p99, limit.p99));
        let (p90, max) = (ratio(self.p90, limit.p90), ratio(self.max, limit.max));
        Measure { name: name.into(), unit: "times the limit", rounds: self.rounds, p50, p90, p99, max }
    }
}

pub(crate) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// For a person.
pub(crate) fn table(measures: &[Measure]) -> String {
    let mut text = format!("{:<72} {:>6} {:>9} {:>9} {:>9} {:>9}\n", "", "rounds", "p50", "p90", "p99", "max");
    for Measure { name, unit, rounds, p50, p90, p99, max } in measures {
        let row = format!("{:<72} {rounds:>6} {p50:>9.2}", format!("{name}, {unit}"));
        text.push_str(&match rounds {
            1 => format!("{row}\n"),
            _ => format!("{row} {p90:>9.2} {p99:>9.2} {max:>9.2}\n"),
        });
    }
    text
}

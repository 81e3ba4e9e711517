//! The result of one measurement, of one or many samples.

use playground::text_table::{self, Align};
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
        let percentile = |percent: usize| {
            values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
        };
        let rounds = values.len();
        Measure {
            name: name.into(),
            unit,
            rounds,
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: percentile(100),
        }
    }

    pub(crate) fn one(name: impl Into<String>, unit: &'static str, value: f64) -> Measure {
        Measure::of(name, unit, vec![value])
    }

    pub(crate) fn count(name: impl Into<String>, number: usize) -> Measure {
        Measure::one(name, "count", count(number))
    }

    /// The ratio of every percentile to that of the baseline.
    pub(crate) fn ratio_to(&self, baseline: &Measure, name: &str) -> Measure {
        let ratio = |one: f64, other: f64| if other > 0.0 { one / other } else { 0.0 };
        let (p50, p99) = (ratio(self.p50, baseline.p50), ratio(self.p99, baseline.p99));
        let (p90, max) = (ratio(self.p90, baseline.p90), ratio(self.max, baseline.max));
        Measure { name: name.into(), unit: "times the baseline", rounds: self.rounds, p50, p90, p99, max }
    }
}

pub(crate) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Formats the measurements as a table.
pub(crate) fn table(measures: &[Measure]) -> Vec<String> {
    let mut rows = vec![["", "rounds", "p50", "p90", "p99", "max"].map(str::to_owned)];
    for Measure { name, unit, rounds, p50, p90, p99, max } in measures {
        let number = |value: f64| format!("{value:.2}");
        // One sample has no percentiles.
        let spread = |value: f64| if *rounds == 1 { String::new() } else { number(value) };
        let name = format!("{name}, {unit}");
        rows.push([name, rounds.to_string(), number(*p50), spread(*p90), spread(*p99), spread(*max)]);
    }
    let right = Align::Right;
    text_table::lines([Align::Left, right, right, right, right, right], &rows)
}

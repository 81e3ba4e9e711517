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
    /// What half of the samples may take at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    /// What 99 of a hundred may take at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_of_p99: Option<f64>,
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
            limit: None,
            limit_of_p99: None,
        }
    }

    /// It is too much if half of the samples are more than this.
    pub(crate) fn at_most(self, limit: f64) -> Measure {
        Measure { limit: Some(limit), ..self }
    }

    /// It is too much if more than one of a hundred samples is more than this.
    pub(crate) fn p99_at_most(self, limit: f64) -> Measure {
        Measure { limit_of_p99: Some(limit), ..self }
    }

    /// What is said if it is too much, or if nothing was measured.
    pub(crate) fn complaint(&self) -> Option<String> {
        let limits = [(self.limit, self.p50, ""), (self.limit_of_p99, self.p99, " of p99")];
        let (limit, value, of) = limits.into_iter().find_map(|(limit, value, of)| {
            Some((limit.filter(|limit| self.rounds == 0 || value > *limit)?, value, of))
        })?;
        Some(format!("{}: {value:.2} {}, and the limit{of} is {limit}", self.name, self.unit))
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
        let (rounds, limit, limit_of_p99) = (self.rounds, None, None);
        Measure { name: name.into(), unit: "times the baseline", rounds, p50, p90, p99, max, limit, limit_of_p99 }
    }
}

pub(crate) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Formats the measurements as a table.
pub(crate) fn table(measures: &[Measure]) -> Vec<String> {
    let mut rows = vec![["", "rounds", "p50", "p90", "p99", "max", "limit of p50", "of p99"].map(str::to_owned)];
    for Measure { name, unit, rounds, p50, p90, p99, max, limit, limit_of_p99 } in measures {
        let number = |value: f64| format!("{value:.2}");
        // One sample has no percentiles.
        let spread = |value: f64| if *rounds == 1 { String::new() } else { number(value) };
        let name = format!("{name}, {unit}");
        let [limit, of_p99] =
            [limit, limit_of_p99].map(|limit| limit.map(|limit| limit.to_string()).unwrap_or_default());
        rows.push([name, rounds.to_string(), number(*p50), spread(*p90), spread(*p99), spread(*max), limit, of_p99]);
    }
    let right = Align::Right;
    text_table::lines([Align::Left, right, right, right, right, right, right, right], &rows)
}

#[cfg(test)]
mod tests {
    use super::{Measure, table};

    #[test]
    fn a_measure_over_its_limit_is_complained_about_and_the_limit_is_shown() {
        let many = |limit: f64| Measure::of("pass", "ms", vec![10.0, 50.0, 900.0]).at_most(limit);
        assert_eq!(many(50.0).complaint(), None, "half of the samples count");
        assert_eq!(many(49.5).complaint().unwrap(), "pass: 50.00 ms, and the limit is 49.5");
        assert_eq!(Measure::one("memory", "MB", 41.0).complaint(), None, "it has no limit");
        assert!(Measure::of("nothing", "ms", Vec::new()).at_most(1.0).complaint().is_some());
        let lines = table(&[many(49.5), Measure::one("memory", "MB", 41.0)]);
        assert!(
            lines[0].contains("limit of p50") && lines[1].trim_end().ends_with("49.5") && !lines[2].contains("49.5"),
            "{lines:?}"
        );
        let many = |limit: f64| Measure::of("pass", "ms", vec![10.0, 50.0, 900.0]).at_most(50.0).p99_at_most(limit);
        assert_eq!(many(900.0).complaint(), None);
        assert_eq!(many(899.0).complaint().unwrap(), "pass: 900.00 ms, and the limit of p99 is 899");
        assert!(table(&[many(899.0)])[1].ends_with("899"));
    }
}

//! Runs the property tests of the THINK crates, those in a module `fuzz`, repeatedly for a given time.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The crates with such tests.
const CRATES: [&str; 2] = ["change", "autopilot"];
/// The first batch measures how fast a fuzzer is.
const FIRST_BATCH: u64 = 1_000;
/// A slow fuzzer, such as the simulation, runs longer than it is given until it has tried so many cases.
const LEAST: u64 = 10_000;
/// The duration of a batch: short enough to keep to the time, long enough that starting the process does not matter.
const BATCH: Duration = Duration::from_secs(5);

/// Runs each fuzzer for at least this many seconds; stops at the first failure and prints its minimal input.
pub(crate) fn run(seconds: &str) -> anyhow::Result<()> {
    let seconds: u64 = seconds.parse().with_context(|| format!("{seconds:?} is not a number of seconds"))?;
    let budget = Duration::from_secs(seconds);
    let programs = build()?;
    println!("{:<70} {:>12} {:>12}", "FUZZER", "CASES", "CASES/S");
    for name in CRATES {
        let program =
            programs.get(name).with_context(|| format!("cargo did not report the test executable of {name}"))?;
        let list = output(program, &["--list", "--format=terse"], 1)?;
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let fuzzers: Vec<&str> = fuzzers(&list).collect();
        if fuzzers.is_empty() {
            bail!("crate {name} has no test in a module called fuzz");
        }
        for fuzzer in fuzzers {
            let (cases, took) = run_for(program, fuzzer, budget)?;
            let rate = cases as f64 / took.as_secs_f64().max(0.001);
            println!("{:<70} {cases:>12} {rate:>12.0}", format!("{name} {}", fuzzer.trim_start_matches("fuzz::")));
        }
    }
    Ok(())
}

/// The fuzzers in a test executable's list.
fn fuzzers(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|name| name.split("::").any(|part| part == "fuzz"))
}

fn run_for(program: &str, fuzzer: &str, budget: Duration) -> anyhow::Result<(u64, Duration)> {
    let (mut cases, mut batch, start) = (0, FIRST_BATCH, Instant::now());
    while cases < LEAST || start.elapsed() < budget {
        let outcome = output(program, &[fuzzer, "--exact"], batch)?;
        if !outcome.status.success() {
            bail!("{fuzzer} failed\n{}", String::from_utf8_lossy(&outcome.stdout));
        }
        cases += batch;
        batch = next_batch(cases, start.elapsed(), budget);
    }
    Ok((cases, start.elapsed()))
}

/// The number of cases that fit into a batch or into the remaining time.
fn next_batch(cases: u64, took: Duration, budget: Duration) -> u64 {
    let rate = cases as f64 / took.as_secs_f64().max(0.001);
    let time = budget.saturating_sub(took).min(BATCH);
    ((rate * time.as_secs_f64()) as u64).max(FIRST_BATCH / 10)
}

fn output(program: &str, arguments: &[&str], cases: u64) -> anyhow::Result<Output> {
    let mut command = Command::new(program);
    let command = command.args(arguments).env("PROPTEST_CASES", cases.to_string()).env("RUST_BACKTRACE", "0");
    command.output().with_context(|| format!("could not run {program}"))
}

/// Builds the unit tests of all these crates with one command, so that they share dependencies, and returns the executables.
fn build() -> anyhow::Result<BTreeMap<String, String>> {
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    let arguments = ["test", "--profile=fuzz", "--lib", "--no-run", "--locked", "--message-format=json"];
    let mut command = Command::new("cargo");
    let built =
        command.args(arguments).args(packages).stderr(Stdio::inherit()).output().context("could not run cargo")?;
    if !built.status.success() {
        bail!("the tests failed to build");
    }
    let programs = String::from_utf8_lossy(&built.stdout).into_owned();
    let programs = programs.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some((message["target"]["name"].as_str()?.to_owned(), message["executable"].as_str()?.to_owned()))
    });
    Ok(programs.collect())
}

#[cfg(test)]
mod tests {
    use super::{FIRST_BATCH, fuzzers, next_batch};
    use std::time::Duration;

    #[test]
    fn fuzzers_are_the_tests_in_modules_called_fuzz() {
        let list = "corpus::a: test\nfuzz::b: test\nfields::fuzz::c: test\nfuzzy::d: test\nx: benchmark\n";
        assert_eq!(fuzzers(list).collect::<Vec<_>>(), ["fuzz::b", "fields::fuzz::c"]);
    }

    #[test]
    fn a_batch_fits_into_the_remaining_time() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(next_batch(1_000, second, minute), 5_000);
        assert_eq!(next_batch(59_000, Duration::from_secs(59), minute), 1_000);
        assert_eq!(next_batch(1, minute, minute), FIRST_BATCH / 10, "a batch without remaining time is small");
    }
}

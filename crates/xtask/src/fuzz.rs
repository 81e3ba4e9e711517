//! Runs the property tests of the crates that think again and again for a while: those in a module called `fuzz`.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The crates that have some.
const CRATES: [&str; 2] = ["change", "autopilot"];
/// The first batch tells how fast a fuzzer is.
const FIRST_BATCH: u64 = 1_000;
/// A batch takes about so long, so that the time is kept and a program is not started all the time.
const BATCH: Duration = Duration::from_secs(5);

/// Runs each for so many seconds; the first that fails ends it, with the smallest input that does.
pub(crate) fn run(seconds: &str) -> anyhow::Result<()> {
    let seconds: u64 = seconds.parse().with_context(|| format!("{seconds:?} is no number of seconds"))?;
    let budget = Duration::from_secs(seconds);
    let programs = build()?;
    println!("{:<70} {:>12} {:>12}", "FUZZER", "CASES", "CASES/S");
    for name in CRATES {
        let program = programs.get(name).with_context(|| format!("cargo did not say where the tests of {name} are"))?;
        let list = output(program, &["--list", "--format=terse"], 1)?;
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let fuzzers: Vec<&str> = fuzzers(&list).collect();
        if fuzzers.is_empty() {
            bail!("crate {name} has no test in a module called fuzz");
        }
        for fuzzer in fuzzers {
            let (cases, took) = try_for(program, fuzzer, budget)?;
            let rate = cases as f64 / took.as_secs_f64().max(0.001);
            println!("{:<70} {cases:>12} {rate:>12.0}", format!("{name} {}", fuzzer.trim_start_matches("fuzz::")));
        }
    }
    Ok(())
}

/// The fuzzers in what a test program lists.
fn fuzzers(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).filter(|name| name.starts_with("fuzz::"))
}

fn try_for(program: &str, fuzzer: &str, budget: Duration) -> anyhow::Result<(u64, Duration)> {
    let (mut cases, mut batch, start) = (0, FIRST_BATCH, Instant::now());
    while cases == 0 || start.elapsed() < budget {
        let outcome = output(program, &[fuzzer, "--exact"], batch)?;
        if !outcome.status.success() {
            bail!("{fuzzer} fails\n{}", String::from_utf8_lossy(&outcome.stdout));
        }
        cases += batch;
        batch = next_batch(cases, start.elapsed(), budget);
    }
    Ok((cases, start.elapsed()))
}

/// As many cases as fit into a batch, or into what is left.
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

/// Builds the unit tests of the crates, all at once so that they share what they are built with, and says where each is.
fn build() -> anyhow::Result<BTreeMap<String, String>> {
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    let arguments = ["test", "--profile=fuzz", "--lib", "--no-run", "--locked", "--message-format=json"];
    let mut command = Command::new("cargo");
    let built =
        command.args(arguments).args(packages).stderr(Stdio::inherit()).output().context("could not run cargo")?;
    if !built.status.success() {
        bail!("the tests do not build");
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
    fn fuzzers_are_the_tests_of_that_module() {
        let list = "corpus::a: test\nfuzz::b: test\nfuzz::c: test\nx: benchmark\n";
        assert_eq!(fuzzers(list).collect::<Vec<_>>(), ["fuzz::b", "fuzz::c"]);
    }

    #[test]
    fn a_batch_fits_into_what_is_left_of_the_time() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(next_batch(1_000, second, minute), 5_000);
        assert_eq!(next_batch(59_000, Duration::from_secs(59), minute), 1_000);
        assert_eq!(next_batch(1, minute, minute), FIRST_BATCH / 10, "and one of no time is small");
    }
}

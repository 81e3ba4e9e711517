//! Runs a test program with one mutant after another, each only as long as no test has failed.

use super::mutant::Fate;
use super::rewrite::{CALLED, CHOSEN, Number};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Few cases for each property test, and always the same ones: a mutant that only other cases find needs a test of its own.
const PROPERTY_TESTS: [(&str, &str); 2] = [("PROPTEST_CASES", "16"), ("PROPTEST_RNG_SEED", "1")];
/// Bodies of all mutants in one function make it need much of the stack.
const STACK: (&str, &str) = ("RUST_MIN_STACK", "134217728");
/// In KiB. A mutant that never stops collecting must not take the memory of the machine.
const MEMORY: u64 = 4 * 1024 * 1024;
/// What tests may need beyond ten times of what they need without a mutant. A mutant that makes a test loop is caught.
const LEAST_TIME: Duration = Duration::from_secs(10);
/// Tests that take longer run after all others.
const SLOW: Duration = Duration::from_millis(100);
/// About what the tests of one run take together: the shorter it is, the sooner a loop is noticed.
const RUN: Duration = Duration::from_secs(1);

/// A program and its tests.
pub(super) struct Program {
    path: PathBuf,
    folder: PathBuf,
    tests: Vec<Test>,
}

/// What a test does without a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    name: String,
    took: Duration,
    /// The functions that it calls, each named by its first mutant.
    called: BTreeSet<Number>,
}

impl Program {
    /// Runs every test without a mutant, in the folder of its crate. All must pass.
    pub(super) fn learn(path: &Path, folder: &Path, scratch: &Path) -> anyhow::Result<Program> {
        let mut program = Program { path: path.to_owned(), folder: folder.to_owned(), tests: Vec::new() };
        let list = program.command(LEAST_TIME).args(["--list", "--format=terse"]).output();
        let list = String::from_utf8(list.context("could not run the test program")?.stdout)?;
        for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
            let (record, start) = (scratch.join("called"), Instant::now());
            std::fs::write(&record, "")?;
            let mut command = program.command(Duration::from_secs(600));
            let output = command.args(["--exact", name]).env(CALLED, &record).output()?;
            if !output.status.success() {
                bail!("{name} fails without a mutant:\n{}", String::from_utf8_lossy(&output.stdout));
            }
            let called = std::fs::read_to_string(&record)?.lines().filter_map(|line| line.parse().ok()).collect();
            program.tests.push(Test { name: name.to_owned(), took: start.elapsed(), called });
        }
        match program.tests.len() {
            0 => bail!("{} has no tests, or did not run", path.display()),
            _ => Ok(program),
        }
    }

    /// The same tests in another program.
    pub(super) fn rebuilt(&self, path: &Path) -> Program {
        Program { path: path.to_owned(), folder: self.folder.clone(), tests: self.tests.clone() }
    }

    /// What the tests say about a mutant of a file: those that call its function, or all if it is in none that can be chosen.
    pub(super) fn test(&self, mutant: Number, function: Option<Number>, file: &str) -> anyhow::Result<Fate> {
        let calling = self.tests.iter().filter(|test| function.is_none_or(|function| test.called.contains(&function)));
        for tests in in_order(calling.collect(), &module(file)) {
            let fate = self.run(mutant, &tests)?;
            if fate != Fate::Missed {
                return Ok(fate);
            }
        }
        Ok(Fate::Missed)
    }

    fn run(&self, mutant: Number, tests: &[&Test]) -> anyhow::Result<Fate> {
        let limit = LEAST_TIME + 10 * tests.iter().map(|test| test.took).sum::<Duration>();
        let mut command = self.command(limit);
        command.env(CHOSEN, mutant.to_string()).args(["--exact", "--test-threads=1"]);
        command.args(tests.iter().map(|test| &test.name)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("could not run the test program")?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                lines.filter(|line| line.ends_with(" FAILED")).for_each(|line| _ = sender.send(line));
            });
        }
        // The limit is on the time of the processor, of which a waiting test needs none.
        let failed = lines.recv_timeout(10 * limit);
        if failed != Err(RecvTimeoutError::Disconnected) {
            let _ = child.kill();
        }
        Ok(fate(&failed, child.wait()?))
    }

    /// A run that may take this much of the processor's time, and only so much memory.
    fn command(&self, limit: Duration) -> Command {
        let mut command = Command::new("sh");
        let limits =
            format!("ulimit -c 0 && ulimit -t {} && ulimit -v {MEMORY} && exec \"$0\" \"$@\"", limit.as_secs());
        command.args(["-c", &limits]).arg(&self.path).current_dir(&self.folder).stdin(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &self.folder).env_remove("UPDATE_EXPECT").envs(PROPERTY_TESTS).envs([STACK]);
        command
    }
}

/// What a run says: whether a test failed, and how the program ended otherwise.
fn fate(failed: &Result<String, RecvTimeoutError>, status: ExitStatus) -> Fate {
    use std::os::unix::process::ExitStatusExt;
    /// The processor's time is used up.
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    match failed {
        Ok(_) => Fate::Caught,
        Err(RecvTimeoutError::Timeout) => Fate::Timeout,
        Err(RecvTimeoutError::Disconnected) => match status.signal() {
            Some(SIGXCPU | SIGKILL) => Fate::Timeout,
            _ if status.success() => Fate::Missed,
            _ => Fate::Caught,
        },
    }
}

/// The module of a file: `core::reads` for `crates/autopilot/src/core/reads.rs`.
fn module(file: &str) -> String {
    let path = file.split_once("/src/").map_or(file, |(_, path)| path);
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.replace('/', "::")
}

/// Runs of tests: those that are likely to fail first, and slow ones last.
fn in_order<'a>(tests: Vec<&'a Test>, module: &str) -> Vec<Vec<&'a Test>> {
    let (slow, quick): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| test.took > SLOW);
    let is_near = |test: &&Test| test.name.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"));
    let (near, far): (Vec<_>, Vec<_>) = quick.into_iter().partition(is_near);
    [near, far, slow].into_iter().flat_map(runs).collect()
}

fn runs(tests: Vec<&Test>) -> Vec<Vec<&Test>> {
    let (mut runs, mut time) = (Vec::new(), RUN);
    for test in tests {
        if time >= RUN {
            runs.push(Vec::new());
            time = Duration::ZERO;
        }
        time += test.took;
        runs.last_mut().into_iter().for_each(|run| run.push(test));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::{Test, fate, in_order, module};
    use crate::mutants::mutant::Fate;
    use std::collections::BTreeSet;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
    use std::time::Duration;

    #[test]
    fn a_run_without_a_failed_test_is_missed_only_if_it_ends_well() {
        let cases = [
            (Ok("test a ... FAILED".to_owned()), 9, Fate::Caught),
            (Err(Timeout), 9, Fate::Timeout),
            (Err(Disconnected), 0, Fate::Missed),
            (Err(Disconnected), 101 << 8, Fate::Caught),
            (Err(Disconnected), 6, Fate::Caught),
            (Err(Disconnected), 24, Fate::Timeout),
        ];
        for (failed, status, expected) in cases {
            assert_eq!(fate(&failed, ExitStatus::from_raw(status)), expected, "{failed:?} {status}");
        }
    }

    #[test]
    fn tests_beside_the_mutant_run_first_and_slow_ones_last() {
        let test =
            |name: &str, took| Test { name: name.into(), took: Duration::from_millis(took), called: BTreeSet::new() };
        let tests = [
            test("a::tests::x", 1),
            test("a::tests::y", 900),
            test("ab::tests::z", 1),
            test("b::slow", 200),
            test("c::slow", 2_000),
        ];
        let names = |run: Vec<&Test>| run.into_iter().map(|test| test.name.clone()).collect::<Vec<_>>().join(" ");
        let runs: Vec<String> = in_order(tests.iter().collect(), "a").into_iter().map(names).collect();
        assert_eq!(runs, ["a::tests::x", "ab::tests::z", "a::tests::y b::slow", "c::slow"]);
        assert!(in_order(Vec::new(), "a").is_empty());
    }

    #[test]
    fn the_module_of_a_file_is_its_path() {
        assert_eq!(module("crates/autopilot/src/core/reads.rs"), "core::reads");
        assert_eq!(module("crates/change/src/overrides/mod.rs"), "overrides");
    }
}

//! Commands whose every process can be found again by a mark in its environment.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const VARIABLE: &str = "VIRTPILOT_TEST_MARK";
const PLAYGROUND: &str = env!("CARGO_BIN_EXE_virtpilot-playground");

/// A mark that no other test uses.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new(test: &str) -> Mark {
        Mark(format!("{test}-{}", std::process::id()))
    }

    /// The playground's binary, marked.
    pub(crate) fn playground(&self) -> Command {
        let mut command = Command::new(PLAYGROUND);
        command.env(VARIABLE, &self.0);
        command
    }

    /// Any program, marked.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env(VARIABLE, &self.0);
        command
    }

    /// The ids and names of all living processes with this mark.
    pub(crate) fn alive(&self) -> Vec<(u32, String)> {
        let wanted = format!("{VARIABLE}={}", self.0);
        let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let marked = environment.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes());
            let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            marked.then(|| (id, name.trim().to_owned()))
        });
        processes.collect()
    }

    /// Waits until no process with this mark lives; fails when one stays.
    pub(crate) fn expect_gone(&self) {
        // The kernel needs a moment to end what was killed; a second is plenty, ten are for a busy machine.
        let begun = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "these are left: {alive:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The workspace's other binary.
pub(crate) fn virtpilot() -> PathBuf {
    let path = Path::new(PLAYGROUND).with_file_name("virtpilot");
    assert!(path.is_file(), "{} is not built: use `cargo test --workspace`", path.display());
    path
}

/// What a command said and how it ended.
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

/// Runs a command to its end, without a terminal.
pub(crate) fn run(command: &mut Command) -> Said {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { out: text(&output.stdout), err: text(&output.stderr), code: output.status.code() }
}

/// Starts a command and reads its standard error until a line has these words; then hands over that line and the rest to come.
pub(crate) fn start_until(command: &mut Command, words: &str) -> (Child, String, std::thread::JoinHandle<String>) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let line = loop {
        let mut line = String::new();
        let length = lines.read_line(&mut line).unwrap();
        said.push_str(&line);
        assert!(length > 0, "it ended without saying {words:?}:\n{said}");
        if line.contains(words) {
            break line;
        }
    };
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        rest
    });
    (child, line, rest)
}

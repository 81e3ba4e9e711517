//! Runs commands whose processes can be found by a variable in their environment.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const VARIABLE: &str = "VIRTPILOT_TEST_MARK";
const PLAYGROUND: &str = env!("CARGO_BIN_EXE_virtpilot-playground");

/// A value of the variable that no other test uses.
pub(crate) struct ProcessMark(String);

impl ProcessMark {
    pub(crate) fn new(test: &str) -> ProcessMark {
        ProcessMark(format!("{test}-{}", std::process::id()))
    }

    /// The playground binary with this mark.
    pub(crate) fn playground(&self) -> Command {
        let mut command = Command::new(PLAYGROUND);
        command.env(VARIABLE, &self.0);
        command
    }

    /// Any program with this mark.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env(VARIABLE, &self.0);
        command
    }

    /// The ids and names of all running processes with this mark.
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

    /// Waits until no process with this mark is running; fails if one stays.
    pub(crate) fn expect_gone(&self) {
        // The kernel needs a moment to end a killed process; ten seconds allow for a busy machine.
        let started = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "still running: {alive:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
}

/// The operator binary.
pub(crate) fn virtpilot() -> PathBuf {
    let path = Path::new(PLAYGROUND).with_file_name("virtpilot");
    assert!(path.is_file(), "{} is not built: use `cargo test --workspace`", path.display());
    path
}

/// The output and exit code of a command.
pub(crate) struct CommandOutput {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

/// Runs a command to its end, without a terminal.
pub(crate) fn run(command: &mut Command) -> CommandOutput {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    CommandOutput { out: text(&output.stdout), err: text(&output.stderr), code: output.status.code() }
}

/// Starts a command and reads its standard error up to a line with this text; returns that line and, later, the rest.
pub(crate) fn start_until(command: &mut Command, text: &str) -> (Child, String, std::thread::JoinHandle<String>) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut read = String::new();
    let line = loop {
        let mut line = String::new();
        let length = lines.read_line(&mut line).unwrap();
        read.push_str(&line);
        assert!(length > 0, "the command ended without printing {text:?}:\n{read}");
        if line.contains(text) {
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

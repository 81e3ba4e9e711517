//! The parent's handle on a supervisor process and, through it, on all child processes.

use super::protocol::{Output, Report, Request, Start};
use crate::user_error::UserError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::sync::mpsc;

/// A supervisor and its child processes; dropping the handle ends them all, and so does the death of this process.
#[derive(Debug)]
pub struct SupervisorHandle {
    supervisor: Child,
    requests: Option<ChildStdin>,
    reports: mpsc::UnboundedReceiver<Report>,
    pids: BTreeMap<String, u32>,
}

impl SupervisorHandle {
    /// Starts a supervisor.
    pub fn new() -> Result<SupervisorHandle, UserError> {
        SupervisorHandle::spawn(&[])
    }

    /// Starts a supervisor that creates a folder in `parent` and removes it at the end unless `keep` is set.
    ///
    /// The supervisor creates it, so there is no moment in which our death would leave it behind.
    pub async fn in_folder(parent: &Path, keep: bool) -> Result<(SupervisorHandle, PathBuf), UserError> {
        let mut arguments = vec!["--folder-in".into(), parent.as_os_str().to_owned()];
        if keep {
            arguments.push("--keep".into());
        }
        let mut supervisor = SupervisorHandle::spawn(&arguments)?;
        match supervisor.next().await {
            Some(Report::Folder(folder)) => Ok((supervisor, folder)),
            _ => Err(lost()),
        }
    }

    fn spawn(arguments: &[OsString]) -> Result<SupervisorHandle, UserError> {
        let program = playground_program()?;
        // Its own process group: Ctrl-C in a terminal must not reach the supervisor, which outlives us to clean up.
        let mut supervisor = Command::new(&program)
            .arg("supervise")
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                UserError::new(
                    format!("could not start the supervisor {}", program.display()),
                    "build the whole workspace (`cargo build --workspace`) and run again",
                )
                .with_source(error)
            })?;
        let requests = supervisor.stdin.take();
        let (sender, reports) = mpsc::unbounded_channel();
        if let Some(out) = supervisor.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    if let Ok(report) = serde_json::from_str(&line)
                        && sender.send(report).is_err()
                    {
                        break;
                    }
                }
            });
        }
        Ok(SupervisorHandle { supervisor, requests, reports, pids: BTreeMap::new() })
    }

    /// Requests the start of a program; `Started`, `Failed` and `Ended` arrive as reports.
    pub fn start(&mut self, start: Start) -> Result<(), UserError> {
        self.send(&Request::Start(start))
    }

    /// Sends SIGTERM to a program and waits until it has ended.
    pub async fn stop(&mut self, name: &str) -> Result<(), UserError> {
        self.send(&Request::Stop(name.to_owned()))?;
        while let Some(report) = self.next().await {
            if matches!(report, Report::Ended { name: ended, .. } if ended == name) {
                break;
            }
        }
        Ok(())
    }

    /// The next report; `None` when the supervisor has exited.
    pub async fn next(&mut self) -> Option<Report> {
        let report = self.reports.recv().await?;
        self.track(&report);
        Some(report)
    }

    /// A report that has already arrived, without waiting; an error when the supervisor has exited.
    pub fn poll(&mut self) -> Result<Option<Report>, UserError> {
        match self.reports.try_recv() {
            Ok(report) => {
                self.track(&report);
                Ok(Some(report))
            }
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => Err(lost()),
        }
    }

    /// The process id of a running program.
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.pids.get(name).copied()
    }

    fn track(&mut self, report: &Report) {
        match report {
            Report::Started { name, pid } => {
                self.pids.insert(name.clone(), *pid);
            }
            Report::Ended { name, .. } => {
                self.pids.remove(name);
            }
            _ => {}
        }
    }

    fn send(&mut self, request: &Request) -> Result<(), UserError> {
        let line = serde_json::to_string(request).map_err(|error| lost().with_source(error))?;
        let requests = self.requests.as_mut().ok_or_else(lost)?;
        writeln!(requests, "{line}").map_err(|error| lost().with_source(error))
    }
}

impl Drop for SupervisorHandle {
    /// Ends all programs and waits for them: afterwards no process and no port is left.
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.supervisor.wait();
    }
}

fn lost() -> UserError {
    UserError::new(
        "the supervisor process exited unexpectedly",
        "see its message above; if there is none, something killed it: run again",
    )
}

/// Runs one program to its end and passes each output line to `each`, with `true` for standard error.
pub async fn run_to_end(start: Start, mut each: impl FnMut(&str, bool)) -> Result<Result<(), String>, UserError> {
    let mut supervisor = SupervisorHandle::new()?;
    supervisor.start(Start { output: Output::Lines, ..start })?;
    while let Some(report) = supervisor.next().await {
        match report {
            Report::Out { text, .. } => each(&text, false),
            Report::Err { text, .. } => each(&text, true),
            Report::Failed { error, .. } => return Ok(Err(error)),
            Report::Ended { success: true, .. } => return Ok(Ok(())),
            Report::Ended { status, .. } => return Ok(Err(status)),
            Report::Started { .. } | Report::Folder(_) => {}
        }
    }
    Err(lost())
}

/// The playground binary: this program itself, or the one beside it in the build folder.
pub(crate) fn playground_program() -> Result<PathBuf, UserError> {
    const NAME: &str = "virtpilot-playground";
    if let Some(path) = std::env::var_os("VIRTPILOT_PLAYGROUND") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().map_err(|error| lost().with_source(error))?;
    if own.file_name().is_some_and(|name| name == NAME) {
        return Ok(own);
    }
    // Tests run from `deps`, one level below the binaries.
    own.ancestors().skip(1).take(2).map(|folder| folder.join(NAME)).find(|path| path.is_file()).ok_or_else(|| {
        UserError::new(
            format!("{NAME} is not beside {}", own.display()),
            "build the whole workspace (`cargo build --workspace`) or set VIRTPILOT_PLAYGROUND to the binary",
        )
    })
}

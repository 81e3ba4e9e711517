//! The parent's hold on a supervisor and, through it, on all its programs.

use super::protocol::{Order, Output, Report, Start};
use crate::trouble::Trouble;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::sync::mpsc;

/// Programs that live as long as this value, and not a moment longer than this process.
#[derive(Debug)]
pub struct Family {
    supervisor: Child,
    orders: Option<ChildStdin>,
    reports: mpsc::UnboundedReceiver<Report>,
    pids: BTreeMap<String, u32>,
}

impl Family {
    /// Starts a supervisor.
    pub fn new() -> Result<Family, Trouble> {
        Family::with(&[])
    }

    /// Starts a supervisor that makes a folder in `place`, and removes it when the family ends unless it is to be kept.
    ///
    /// It is the supervisor that makes it, so there is no moment in which our death would leave it behind.
    pub async fn in_folder(place: &Path, keep: bool) -> Result<(Family, PathBuf), Trouble> {
        let place = place.as_os_str().to_owned();
        let mut arguments = vec!["--folder-in".into(), place];
        if keep {
            arguments.push("--keep".into());
        }
        let mut family = Family::with(&arguments)?;
        match family.next().await {
            Some(Report::Folder(folder)) => Ok((family, folder)),
            _ => Err(lost()),
        }
    }

    fn with(arguments: &[OsString]) -> Result<Family, Trouble> {
        let program = supervisor_program()?;
        // A group of its own: Ctrl-C in a terminal reaches us and not the supervisor, which must outlive us to clean up.
        let mut supervisor = Command::new(&program)
            .arg("supervise")
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Trouble::new(
                    format!("could not start the supervisor {}", program.display()),
                    "build the whole workspace (`cargo build --workspace`) and run again",
                )
                .from(error)
            })?;
        let orders = supervisor.stdin.take();
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
        Ok(Family { supervisor, orders, reports, pids: BTreeMap::new() })
    }

    /// Asks for a program; its `Started`, `Failed` and `Ended` come as reports.
    pub fn start(&mut self, start: Start) -> Result<(), Trouble> {
        self.order(&Order::Start(start))
    }

    /// Asks a program to end (SIGTERM) and waits until it has.
    pub async fn stop(&mut self, name: &str) -> Result<(), Trouble> {
        self.order(&Order::Stop(name.to_owned()))?;
        while let Some(report) = self.next().await {
            if matches!(report, Report::Ended { name: ended, .. } if ended == name) {
                break;
            }
        }
        Ok(())
    }

    /// The next report; `None` when the supervisor is gone.
    pub async fn next(&mut self) -> Option<Report> {
        let report = self.reports.recv().await?;
        self.remember(&report);
        Some(report)
    }

    /// A report that has already come, without waiting; an error when the supervisor is gone.
    pub fn poll(&mut self) -> Result<Option<Report>, Trouble> {
        match self.reports.try_recv() {
            Ok(report) => {
                self.remember(&report);
                Ok(Some(report))
            }
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => Err(lost()),
        }
    }

    /// The process id of a program that runs.
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.pids.get(name).copied()
    }

    fn remember(&mut self, report: &Report) {
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

    fn order(&mut self, order: &Order) -> Result<(), Trouble> {
        let line = serde_json::to_string(order).map_err(|error| lost().from(error))?;
        let orders = self.orders.as_mut().ok_or_else(lost)?;
        writeln!(orders, "{line}").map_err(|error| lost().from(error))
    }
}

impl Drop for Family {
    /// Ends everything and waits for it: after this no process and no port is left.
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.supervisor.wait();
    }
}

fn lost() -> Trouble {
    Trouble::new("the supervisor of our programs is gone", "it says why above, or somebody ended it; run again")
}

/// Runs one program to its end and hands each of its lines to `each`; true in the line's second half means standard error.
pub async fn run_to_end(start: Start, mut each: impl FnMut(&str, bool)) -> Result<Result<(), String>, Trouble> {
    let mut family = Family::new()?;
    family.start(Start { output: Output::Lines, ..start })?;
    while let Some(report) = family.next().await {
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

/// The supervisor is the playground's own binary: this program itself, or the one the build put beside it.
fn supervisor_program() -> Result<PathBuf, Trouble> {
    const NAME: &str = "virtpilot-playground";
    if let Some(path) = std::env::var_os("VIRTPILOT_PLAYGROUND") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().map_err(|error| lost().from(error))?;
    if own.file_name().is_some_and(|name| name == NAME) {
        return Ok(own);
    }
    // Tests run from `deps`, one below the folder of the binaries.
    own.ancestors().skip(1).take(2).map(|folder| folder.join(NAME)).find(|path| path.is_file()).ok_or_else(|| {
        Trouble::new(
            format!("{NAME} is not beside {}", own.display()),
            "build the whole workspace (`cargo build --workspace`) or set VIRTPILOT_PLAYGROUND to the binary",
        )
    })
}

//! The process that runs child processes and kills them all when its standard input closes.

use super::protocol::{Output, Report, Request, Start};
use crate::owned_folder::OwnedFolder;
use crate::run_folder;
use crate::user_error::{self, UserError};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A program that has ended.
struct Exit {
    name: String,
    status: std::io::Result<ExitStatus>,
}

/// Serves requests until standard input closes or a signal arrives; then kills the running programs and removes the
/// folder it has created in `folder_in`, unless `keep` is set.
///
/// Must run on the main thread: the kernel's parent-death signal follows the thread that started a program.
pub async fn supervise(folder_in: Option<&Path>, keep: bool) -> Result<(), UserError> {
    let folder = folder_in.map(|parent| OwnedFolder::create(parent, run_folder::PREFIX)).transpose()?;
    if let Some(folder) = &folder {
        report(&Report::Folder(folder.path().to_owned()));
    }
    let failed = |error| UserError::new("could not install a signal handler", "run again").with_source(error);
    let mut requests = BufReader::new(tokio::io::stdin()).lines();
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let (exit_sender, mut exits) = mpsc::unbounded_channel::<Exit>();
    let mut running: BTreeMap<String, Pid> = BTreeMap::new();
    loop {
        tokio::select! {
            line = requests.next_line() => match line {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(Request::Start(request)) => start(request, &mut running, &exit_sender),
                    Ok(Request::Stop(name)) => { if let Some(pid) = running.get(&name) { let _ = kill_process_group(*pid, Signal::TERM); } }
                    Err(error) => report(&Report::Failed { name: "supervisor".into(), error: error.to_string() }),
                },
                Ok(None) | Err(_) => break,
            },
            Some(exit) = exits.recv() => report_exit(&mut running, exit),
            _ = terminate.recv() => break,
            _ = hangup.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    for pid in running.values() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
    while !running.is_empty() {
        match exits.recv().await {
            Some(exit) => report_exit(&mut running, exit),
            None => break,
        }
    }
    let Some(folder) = folder else { return Ok(()) };
    let path = folder.path().to_owned();
    let result = if keep { folder.keep() } else { folder.remove() };
    result.map_err(|error| user_error::io("remove", &path, error))
}

fn start(request: Start, running: &mut BTreeMap<String, Pid>, exits: &mpsc::UnboundedSender<Exit>) {
    let name = request.name.clone();
    match spawn(request) {
        Ok(child) => {
            let pid = child.id().unwrap_or_default();
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                running.insert(name.clone(), pid);
            }
            report(&Report::Started { name: name.clone(), pid });
            tokio::spawn(forward_output(name, child, exits.clone()));
        }
        Err(error) => report(&Report::Failed { name, error: error.to_string() }),
    }
}

fn spawn(request: Start) -> std::io::Result<Child> {
    let (out, err) = match &request.output {
        Output::Lines => (Stdio::piped(), Stdio::piped()),
        Output::File(path) => {
            let file = std::fs::File::create(path)?;
            (file.try_clone()?.into(), file.into())
        }
    };
    Command::new(std::env::current_exe()?)
        .args(["tether", "--parent", &std::process::id().to_string(), "--"])
        .arg(request.program)
        .args(request.args)
        .envs(request.env)
        .current_dir(request.folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
}

/// Reports a program's output line by line and, after the last line, its exit.
async fn forward_output(name: String, mut child: Child, exits: mpsc::UnboundedSender<Exit>) {
    let out = child.stdout.take();
    let err = child.stderr.take();
    tokio::join!(
        forward_lines(out, |text| report(&Report::Out { name: name.clone(), text })),
        forward_lines(err, |text| report(&Report::Err { name: name.clone(), text })),
    );
    let status = child.wait().await;
    let _ = exits.send(Exit { name, status });
}

async fn forward_lines(stream: Option<impl AsyncRead + Unpin>, forward: impl Fn(String)) {
    let Some(stream) = stream else { return };
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        forward(line);
    }
}

fn report_exit(running: &mut BTreeMap<String, Pid>, exit: Exit) {
    running.remove(&exit.name);
    let (success, status) = match exit.status {
        Ok(status) => (status.success(), status.to_string()),
        Err(error) => (false, error.to_string()),
    };
    report(&Report::Ended { name: exit.name, success, status });
}

/// Writes a report; a failure is ignored because the parent may have exited already.
fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}");
        let _ = out.flush();
    }
}

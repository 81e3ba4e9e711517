//! The process that starts our programs and ends them all when its standard input closes.

use super::protocol::{Order, Output, Report, Start};
use crate::abandoned::Owned;
use crate::run_folder;
use crate::trouble::{self, Trouble};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How the supervisor's own loop is told that a program has ended.
struct Ended {
    name: String,
    status: std::io::Result<ExitStatus>,
}

/// Carries out orders until standard input closes or a signal asks us to end; then kills what still runs and removes the
/// folder it has made in `place` for this family, unless that is to be kept.
///
/// It has to run on the main thread: the kernel's parent-death signal follows the thread that started a program.
pub async fn supervise(place: Option<&Path>, keep: bool) -> Result<(), Trouble> {
    let folder = place.map(|place| Owned::create(place, run_folder::PREFIX)).transpose()?;
    if let Some(folder) = &folder {
        report(&Report::Folder(folder.path().to_owned()));
    }
    let deaf = |error| Trouble::new("could not listen for signals", "run again").from(error);
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut terminate = signal(SignalKind::terminate()).map_err(deaf)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(deaf)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(deaf)?;
    let (ended_sender, mut ended) = mpsc::unbounded_channel::<Ended>();
    let mut running: BTreeMap<String, Pid> = BTreeMap::new();
    loop {
        tokio::select! {
            line = orders.next_line() => match line {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(Order::Start(order)) => start(order, &mut running, &ended_sender),
                    Ok(Order::Stop(name)) => { if let Some(pid) = running.get(&name) { let _ = kill_process_group(*pid, Signal::TERM); } }
                    Err(error) => report(&Report::Failed { name: "supervisor".into(), error: error.to_string() }),
                },
                Ok(None) | Err(_) => break,
            },
            Some(end) = ended.recv() => tell_end(&mut running, end),
            _ = terminate.recv() => break,
            _ = hangup.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    for pid in running.values() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
    while !running.is_empty() {
        match ended.recv().await {
            Some(end) => tell_end(&mut running, end),
            None => break,
        }
    }
    let Some(folder) = folder else { return Ok(()) };
    let path = folder.path().to_owned();
    let ended = if keep { folder.keep() } else { folder.remove() };
    ended.map_err(|error| trouble::io("remove", &path, error))
}

fn start(order: Start, running: &mut BTreeMap<String, Pid>, ended: &mpsc::UnboundedSender<Ended>) {
    let name = order.name.clone();
    match spawn(order) {
        Ok(child) => {
            let pid = child.id().unwrap_or_default();
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                running.insert(name.clone(), pid);
            }
            report(&Report::Started { name: name.clone(), pid });
            tokio::spawn(attend(name, child, ended.clone()));
        }
        Err(error) => report(&Report::Failed { name, error: error.to_string() }),
    }
}

fn spawn(order: Start) -> std::io::Result<Child> {
    let (out, err) = match &order.output {
        Output::Lines => (Stdio::piped(), Stdio::piped()),
        Output::File(path) => {
            let file = std::fs::File::create(path)?;
            (file.try_clone()?.into(), file.into())
        }
    };
    Command::new(std::env::current_exe()?)
        .args(["tether", "--parent", &std::process::id().to_string(), "--"])
        .arg(order.program)
        .args(order.args)
        .envs(order.env)
        .current_dir(order.folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
}

/// Passes a program's lines on and, after the last one, says that it has ended.
async fn attend(name: String, mut child: Child, ended: mpsc::UnboundedSender<Ended>) {
    let out = child.stdout.take();
    let err = child.stderr.take();
    tokio::join!(
        pass_on(out, |text| report(&Report::Out { name: name.clone(), text })),
        pass_on(err, |text| report(&Report::Err { name: name.clone(), text })),
    );
    let status = child.wait().await;
    let _ = ended.send(Ended { name, status });
}

async fn pass_on(stream: Option<impl AsyncRead + Unpin>, tell: impl Fn(String)) {
    let Some(stream) = stream else { return };
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tell(line);
    }
}

fn tell_end(running: &mut BTreeMap<String, Pid>, end: Ended) {
    running.remove(&end.name);
    let (success, status) = match end.status {
        Ok(status) => (status.success(), status.to_string()),
        Err(error) => (false, error.to_string()),
    };
    report(&Report::Ended { name: end.name, success, status });
}

/// The parent may be gone already; then nobody minds that this is lost.
fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}");
        let _ = out.flush();
    }
}

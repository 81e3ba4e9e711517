//! The process of the runner: started without any secret in its arguments and environment, read line by line, stopped with all it started.

use crate::life::Event;
use crate::output::Output;
use crate::users::User;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// The longest line that is read as one.
const LONGEST_LINE: u64 = 8 * 1024;
/// How long output is awaited after the runner has exited; what a job left behind may hold it open.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// What of the guest's environment the runner gets.
const INHERITED: [&str; 9] =
    ["PATH", "LANG", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];
/// The kernel shall rather end a job that uses all memory than the guest, so the runner does not inherit the guest's protection.
const UNPROTECTED: &str = r#"echo 0 2>/dev/null >/proc/self/oom_score_adj; exec "$@""#;

/// Starts the runner in its folder and sends what becomes of it. Returns the id of its process.
pub(crate) fn start(
    folder: &Path,
    user: Option<&User>,
    output: &Arc<Output>,
    events: &Sender<Event>,
) -> Result<u32, String> {
    let program = folder.join("run.sh");
    let is_executable = std::fs::metadata(&program).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if !is_executable {
        return Err(format!(
            "{} is no program: name a folder or an archive with the runner of the CI platform",
            program.display()
        ));
    }
    let mut child = command(folder, user).spawn().map_err(|error| format!("could not start run.sh: {error}"))?;
    let id = child.id();
    let (finished, all_finished) = channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|pipe| Box::new(pipe) as _), child.stderr.take().map(|pipe| Box::new(pipe) as _)];
    for pipe in pipes.into_iter().flatten() {
        let (output, events, finished) = (Arc::clone(output), events.clone(), finished.clone());
        thread::spawn(move || {
            each_line(BufReader::new(pipe), |line| {
                if let Some(event) = meaning(line) {
                    let _ = events.send(event);
                }
                output.runner_said(line);
            });
            let _ = finished.send(());
        });
    }
    let events = events.clone();
    thread::spawn(move || {
        let code = wait(&mut child);
        for _ in 0..2 {
            let _ = all_finished.recv_timeout(LAST_OUTPUT);
        }
        let _ = events.send(Event::RunnerExited(code));
    });
    Ok(id)
}

fn wait(child: &mut Child) -> Option<i32> {
    child.wait().ok().and_then(|status| status.code())
}

fn command(folder: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", UNPROTECTED, "sh"]);
    if let Some(user) = user {
        // With the user's further groups, such as the one that may use Docker.
        let ids = [format!("--reuid={}", user.uid), format!("--regid={}", user.gid)];
        command.arg("setpriv").args(ids).args(["--init-groups", "--"]);
    }
    command.arg(folder.join("run.sh")).current_dir(folder);
    command.env_clear().envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    // Signals are passed on to the listener, and its exit codes to us.
    command.env("RUNNER_MANUALLY_TRAP_SIG", "1").env("ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE", "1");
    let is_root = user.map_or_else(|| rustix::process::geteuid().is_root(), |user| user.uid == 0);
    if is_root {
        command.env("RUNNER_ALLOW_RUNASROOT", "1");
    }
    let (name, home) = user.map_or(("root", "/root"), |user| (&user.name, &user.home));
    command.env("HOME", home).env("USER", name).env("LOGNAME", name);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

/// Asks the runner to stop: it cancels its job and says so to GitHub.
pub(crate) fn stop(id: u32) {
    if let Some(pid) = pid(id) {
        let _ = kill_process_group(pid, Signal::TERM);
    }
}

/// Kills the runner and everything it has started.
pub(crate) fn kill(id: u32) {
    for id in family(id, &parents()) {
        if let Some(pid) = pid(id) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// The parent of every process.
fn parents() -> BTreeMap<u32, u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| Some((id, parent(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?))).collect()
}

/// The parent in the text of `/proc/PID/stat`. The name of a program may contain anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A process and all below it.
fn family(of: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut all = vec![of];
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        next += 1;
        let children = parents.iter().filter(|(id, of)| **of == parent && !all.contains(id)).map(|(id, _)| *id);
        all.extend(children.collect::<Vec<_>>());
    }
    all
}

/// What a line of GitHub's listener or of GitLab's runner means. The output of jobs is not among its lines.
fn meaning(line: &str) -> Option<Event> {
    // GitLab's runner adds fields to what it says of a job.
    if line.contains(" job=") {
        let has_begun = line.contains("Checking for jobs...") && line.contains("received");
        let has_ended = line.contains("Job succeeded") || line.contains("Job failed");
        return has_begun.then_some(Event::JobStarted).or(has_ended.then_some(Event::JobEnded));
    }
    if line.contains("Running job: ") {
        return Some(Event::JobStarted);
    }
    (line.contains("Job ") && line.contains(" completed with result: ")).then_some(Event::JobEnded)
}

fn each_line(mut reader: impl BufRead, mut take: impl FnMut(&str)) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => take(String::from_utf8_lossy(&line).trim_end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_LINE, each_line, family, meaning, parent};
    use crate::life::Event;
    use std::collections::BTreeMap;

    #[test]
    fn the_listeners_lines_say_when_a_job_starts_and_ends() {
        assert_eq!(meaning("2026-11-18 16:00:00Z: Running job: build (x64)"), Some(Event::JobStarted));
        assert_eq!(
            meaning("2026-11-18 16:09:00Z: Job build (x64) completed with result: Failed"),
            Some(Event::JobEnded)
        );
        assert_eq!(meaning("2026-11-18 16:00:00Z: Listening for Jobs"), None);
    }

    #[test]
    fn the_lines_of_gitlabs_runner_say_the_same() {
        let started = "Checking for jobs... received                       job=7 repo_url=https://gitlab.example/a/b.git runner=t1_abc";
        assert_eq!(meaning(started), Some(Event::JobStarted));
        for ended in [
            "Job succeeded                                       duration_s=1.2 job=7 project=3 runner=t1_abc",
            "WARNING: Job failed: exit status 1                  duration_s=1.2 job=7 project=3 runner=t1_abc",
            "ERROR: Job failed (system failure): no shell        duration_s=1.2 job=7 project=3 runner=t1_abc",
        ] {
            assert_eq!(meaning(ended), Some(Event::JobEnded), "{ended}");
        }
        assert_eq!(meaning("Checking for jobs... forbidden                      runner=t1_abc status=403"), None);
        assert_eq!(meaning("Appending trace to coordinator... ok                job=7 runner=t1_abc"), None);
    }

    #[test]
    fn a_line_without_end_needs_no_endless_memory() {
        let mut lines = Vec::new();
        let text = format!("a\n{}\nb", "x".repeat(20_000));
        each_line(text.as_bytes(), |line| lines.push(line.len()));
        let most = usize::try_from(LONGEST_LINE).unwrap();
        assert_eq!(lines, [1, most, most, 20_000 - 2 * most, 1]);
    }

    #[test]
    fn a_family_has_all_below_it_and_nobody_else() {
        assert_eq!(parent("12 (a b) c) S 7 12 12 0 -1"), Some(7));
        let parents: BTreeMap<u32, u32> = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 6)].into();
        assert_eq!(family(2, &parents), [2, 3, 4]);
        assert_eq!(family(6, &parents), [6]);
    }
}

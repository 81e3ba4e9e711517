//! Lets the guest agent of a machine write the files of a seed and run cloud-init.

use crate::proxmox::addresses::is_silent;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::guest_script::{self, EXIT, HAS_BEGUN, NO_CLOUD_INIT, PROCESS, RUNS_ALREADY, SEED};
use crate::proxmox::machine::owned;
use crate::proxmox::power::after;
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::as_flag;
use crate::seed;
use fleet::hypervisor::{Delivery, Failure};
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// Making folders is over at once.
const SHORT: (u32, Duration) = (20, Duration::from_millis(100));

#[derive(Deserialize)]
struct Started {
    pid: i64,
}

#[derive(Deserialize)]
struct ProcessStatus {
    exited: Value,
    #[serde(default)]
    exitcode: Option<i64>,
}

#[derive(Deserialize)]
struct Read {
    content: String,
}

/// How a process in the guest is.
enum Process {
    Runs,
    Ended(i64),
    /// The agent does not know it, or has said before how it ended.
    Forgotten,
}

/// Begins, or finds out how far it is: whether cloud-init has ended well.
pub(crate) async fn deliver(client: &Client, delivery: &Delivery) -> Result<bool, Failure> {
    let Delivery { target, files } = delivery;
    let (machine, _) = owned(client, target).await?;
    let guest = Guest { client, parts: [&machine.node, &target.id.0] };
    let mut names = files.keys().map(String::as_str).chain([target.owner.uid.as_str()]);
    if let Some(name) = names.find(|name| !seed::is_plain(name)) {
        return Err(Failure::Permanent(format!("{name:?} cannot be part of a script for the guest")));
    }
    match guest.proceed(&target.owner.uid, files).await {
        Ok(None) => Ok(false),
        Ok(Some(0)) => Ok(true),
        Ok(Some(NO_CLOUD_INIT)) => Err(Failure::Permanent(format!(
            "the guest of machine {} has no cloud-init; install it in the template",
            target.id.0
        ))),
        Ok(Some(code)) => Err(Failure::Permanent(format!(
            "cloud-init has failed in the guest of machine {} with exit code {code}; its log there is /var/log/cloud-init.log",
            target.id.0
        ))),
        // It boots, or its agent starts again.
        Err(trouble) if is_silent(&trouble) => Ok(false),
        Err(trouble) => Err(after(client, &trouble, &target.id, &machine.node, "seeding the guest of").await),
    }
}

struct Guest<'a> {
    client: &'a Client,
    parts: [&'a str; 2],
}

impl Guest<'_> {
    /// The exit code of cloud-init for this claim, which is begun unless it was.
    async fn proceed(&self, uid: &str, files: &BTreeMap<String, String>) -> Result<Option<i64>, Trouble> {
        let process = self.number_in(PROCESS, uid).await?;
        let process = match process {
            Some(process) => self.status(process).await?,
            None => Process::Forgotten,
        };
        match process {
            Process::Runs => return Ok(None),
            Process::Ended(code) if code != RUNS_ALREADY => return Ok(Some(code)),
            Process::Ended(_) | Process::Forgotten => {}
        }
        // The agent tells once how a process has ended, and that answer may have been lost.
        match self.number_in(EXIT, uid).await? {
            Some(code) => Ok(Some(code)),
            None => self.begin(uid, files).await.map(|()| None),
        }
    }

    /// The number in a file of the guest, if the file is there and is about this claim.
    async fn number_in(&self, file: &str, uid: &str) -> Result<Option<i64>, Trouble> {
        let content = Content::Parameters(vec![("file", file.to_owned())]);
        let path = "/nodes/{node}/qemu/{vmid}/agent/file-read";
        let read = self.client.send::<Read>(Call { method: Method::GET, path, parts: &self.parts, content }).await;
        let read = match read {
            Err(trouble) if is_missing(&trouble) => return Ok(None),
            other => other?,
        };
        let of = read.content.trim().split_once(' ').filter(|(of, _)| *of == uid);
        Ok(of.and_then(|(_, number)| number.parse().ok()))
    }

    async fn status(&self, pid: i64) -> Result<Process, Trouble> {
        let content = Content::Parameters(vec![("pid", pid.to_string())]);
        let path = "/nodes/{node}/qemu/{vmid}/agent/exec-status";
        let status = self.client.send::<ProcessStatus>(Call { method: Method::GET, path, parts: &self.parts, content });
        match status.await {
            Ok(status) if as_flag(&status.exited) => Ok(Process::Ended(status.exitcode.unwrap_or(-1))),
            Ok(_) => Ok(Process::Runs),
            Err(trouble) if is_missing(&trouble) => Ok(Process::Forgotten),
            Err(trouble) => Err(trouble),
        }
    }

    async fn begin(&self, uid: &str, files: &BTreeMap<String, String>) -> Result<(), Trouble> {
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        let prepared = self.execute(&guest_script::prepare(uid, &names)).await?;
        match self.end(prepared).await? {
            Some(0) => {
                for (name, text) in files {
                    self.write(&format!("{SEED}/{name}"), text).await?;
                }
            }
            Some(HAS_BEGUN) => {}
            // It runs, or nobody knows: the next question tells.
            Some(RUNS_ALREADY) | None => return Ok(()),
            Some(code) => {
                let message =
                    format!("the guest cannot make the folder {SEED} or the one of {PROCESS} (exit code {code})");
                return Err(Trouble::Answered { code: 500, message });
            }
        }
        let process = self.execute(&guest_script::run(uid)).await?;
        self.write(PROCESS, &format!("{uid} {process}\n")).await
    }

    /// The exit code of a process that is over soon.
    async fn end(&self, process: i64) -> Result<Option<i64>, Trouble> {
        for _ in 0..SHORT.0 {
            match self.status(process).await? {
                Process::Runs => sleep(SHORT.1).await,
                Process::Ended(code) => return Ok(Some(code)),
                Process::Forgotten => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Runs a script, which the shell gets as its input; the process.
    async fn execute(&self, script: &str) -> Result<i64, Trouble> {
        let parameters = vec![("command", "/bin/sh".to_owned()), ("input-data", script.to_owned())];
        let (path, content) = ("/nodes/{node}/qemu/{vmid}/agent/exec", Content::Parameters(parameters));
        let call = Call { method: Method::POST, path, parts: &self.parts, content };
        self.client.send::<Started>(call).await.map(|started| started.pid)
    }

    async fn write(&self, file: &str, text: &str) -> Result<(), Trouble> {
        let parameters = vec![("file", file.to_owned()), ("content", text.to_owned())];
        let (path, content) = ("/nodes/{node}/qemu/{vmid}/agent/file-write", Content::Parameters(parameters));
        let call = Call { method: Method::POST, path, parts: &self.parts, content };
        self.client.send::<Value>(call).await.map(|_| ())
    }
}

/// Whether there is no such file or process in the guest.
fn is_missing(trouble: &Trouble) -> bool {
    let Trouble::Answered { code: 500, message } = trouble else { return false };
    let lower = message.to_lowercase();
    lower.contains("no such file")
        || (lower.contains("pid") && lower.contains("does not exist"))
        // Before QEMU 9.1.
        || lower.contains("invalid parameter 'pid'")
}

#[cfg(test)]
mod tests {
    use super::is_missing;
    use crate::proxmox::trouble::Trouble;

    #[test]
    fn what_is_missing_in_the_guest_is_told_from_other_trouble() {
        let answered = |message: &str| Trouble::Answered { code: 500, message: message.into() };
        let file = "Agent error: Failed to open file '/var/lib/hyperfleet/seed-process': No such file or directory";
        assert!(is_missing(&answered(file)) && is_missing(&answered("Agent error: PID 812 does not exist")));
        assert!(is_missing(&answered("Agent error: Invalid parameter 'pid'")), "an older agent");
        assert!(!is_missing(&answered("Agent error: Invalid parameter 'path'")));
        assert!(!is_missing(&answered("QEMU guest agent is not running")));
    }
}

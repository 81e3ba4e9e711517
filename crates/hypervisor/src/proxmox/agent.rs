//! Lets the guest agent of a machine write the files of a seed and run cloud-init.

use crate::proxmox::addresses::is_silent;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::machine::owned;
use crate::proxmox::power::after;
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::as_flag;
use fleet::hypervisor::{Delivery, Failure};
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

/// Where cloud-init looks for a seed without an image.
const SEED: &str = "/var/lib/cloud/seed/nocloud";
/// Says which process runs cloud-init for which claim.
const PROCESS: &str = "/etc/hyperfleet/seed-process";
/// The folders, before anything is written. The agent creates none.
const PREPARE: &str = "mkdir -p /var/lib/cloud/seed/nocloud /etc/hyperfleet\n";
/// Cloud-init as at a first boot. A second run while the first one goes on is told apart by its exit code, and one after it does nothing.
const RUN: &str = r#"command -v cloud-init >/dev/null || exit 69
[ ! -e /etc/hyperfleet/seed-applied ] || exit 0
mkdir /run/hyperfleet-seed 2>/dev/null || exit 75
rm -f /run/cloud-init/cloud.cfg
stage() { cloud-init "$@" || [ $? -eq 2 ] || { rmdir /run/hyperfleet-seed; exit 1; }; }
stage clean
stage init --local
stage init
stage modules --mode config
stage modules --mode final
touch /etc/hyperfleet/seed-applied
"#;
const NO_CLOUD_INIT: i64 = 69;
const RUNS_ALREADY: i64 = 75;
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
    let process = match guest.process(&target.owner.uid).await {
        Ok(Process::Forgotten | Process::Ended(RUNS_ALREADY)) => {
            guest.begin(&target.owner.uid, files).await.map(|()| None)
        }
        Ok(Process::Runs) => Ok(None),
        Ok(Process::Ended(code)) => Ok(Some(code)),
        Err(trouble) => Err(trouble),
    };
    match process {
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
    /// The process that runs cloud-init for this claim.
    async fn process(&self, uid: &str) -> Result<Process, Trouble> {
        let content = Content::Parameters(vec![("file", PROCESS.to_owned())]);
        let path = "/nodes/{node}/qemu/{vmid}/agent/file-read";
        let read = self.client.send::<Read>(Call { method: Method::GET, path, parts: &self.parts, content }).await;
        let read = match read {
            Err(trouble) if is_missing(&trouble) => return Ok(Process::Forgotten),
            other => other?,
        };
        match read.content.trim().split_once(' ').filter(|(of, _)| *of == uid).and_then(|(_, pid)| pid.parse().ok()) {
            Some(pid) => self.status(pid).await,
            None => Ok(Process::Forgotten),
        }
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

    async fn begin(&self, uid: &str, files: &std::collections::BTreeMap<String, String>) -> Result<(), Trouble> {
        let prepared = self.execute(PREPARE).await?;
        for _ in 0..SHORT.0 {
            match self.status(prepared).await? {
                Process::Runs => sleep(SHORT.1).await,
                Process::Ended(_) | Process::Forgotten => break,
            }
        }
        for (name, text) in files {
            self.write(&format!("{SEED}/{name}"), text).await?;
        }
        let process = self.execute(RUN).await?;
        self.write(PROCESS, &format!("{uid} {process}\n")).await
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
    use super::{PREPARE, RUN, is_missing};
    use crate::proxmox::trouble::Trouble;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_missing_in_the_guest_is_told_from_other_trouble() {
        let answered = |message: &str| Trouble::Answered { code: 500, message: message.into() };
        let file = "Agent error: Failed to open file '/etc/hyperfleet/seed-process': No such file or directory";
        assert!(is_missing(&answered(file)) && is_missing(&answered("Agent error: PID 812 does not exist")));
        assert!(is_missing(&answered("Agent error: Invalid parameter 'pid'")), "an older agent");
        assert!(!is_missing(&answered("Agent error: Invalid parameter 'path'")));
        assert!(!is_missing(&answered("QEMU guest agent is not running")));
    }

    /// The shell reads both, and finds nothing wrong in them.
    #[test]
    fn the_scripts_are_valid_for_any_shell() {
        for script in [PREPARE, RUN] {
            let mut shell = Command::new("/bin/sh").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(shell.wait().unwrap().success(), "{script}");
        }
    }
}

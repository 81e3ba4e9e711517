//! Follows a task of Proxmox VE to its end: that it was accepted does not say that it succeeds.

use crate::proxmox::class::{Class, is_known};
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::trouble::Trouble;
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Most tasks on a stopped machine end within this time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct TaskStatus {
    status: String,
    #[serde(default)]
    exitstatus: Option<String>,
}

/// Waits for the end of the task that an answer names; an answer that names none was carried out at once.
pub(crate) async fn follow(client: &Client, answer: &Value) -> Result<(), Trouble> {
    let Some(upid) = answer.as_str().filter(|text| text.starts_with("UPID:")) else { return Ok(()) };
    let node = upid.split(':').nth(1).unwrap_or_default();
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match client.get::<TaskStatus>("/nodes/{node}/tasks/{upid}/status", &[node, upid]).await {
            Ok(TaskStatus { status, exitstatus }) if status == "stopped" => {
                return match ended(upid, exitstatus.as_deref()) {
                    Err(Trouble::Answered { code, message }) if !is_known(&message) => {
                        Err(Trouble::Answered { code, message: with_log(client, node, upid, message).await })
                    }
                    other => other,
                };
            }
            Ok(_) => {}
            // The task goes on, whether or not its status can be read.
            Err(trouble) if matches!(trouble.class(), Class::Transient | Class::NoQuorum) => {}
            Err(Trouble::Answered { code, message }) => {
                let message = format!("the end of task {upid} cannot be read: {message}");
                // It was accepted, so that it may succeed, also where the right to read its status is gone by now.
                return Err(Trouble::Unanswered(format!("{message} ({code})")));
            }
            Err(other) => {
                return Err(Trouble::Unanswered(format!("the end of task {upid} cannot be read: {}", other.message())));
            }
        }
        if start.elapsed() >= client.limits.task {
            return Err(Trouble::Unanswered(format!(
                "task {upid} has not ended within {} s; it may still succeed",
                client.limits.task.as_secs()
            )));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    t: String,
}

/// The message with the end of the log: some tasks, such as a start, print the cause there and nowhere else.
async fn with_log(client: &Client, node: &str, upid: &str, message: String) -> String {
    let (path, parts) = ("/nodes/{node}/tasks/{upid}/log", [node, upid]);
    let content = Content::Parameters(vec![("limit", "500".to_owned())]);
    let log = client.send::<Vec<Line>>(Call { method: Method::GET, path, parts: &parts, content }).await;
    let lines = log.unwrap_or_default();
    let causes = lines.iter().map(|line| line.t.trim()).filter(|line| !line.is_empty() && !line.starts_with("TASK "));
    let causes: Vec<&str> = causes.collect();
    match &causes[causes.len().saturating_sub(3)..] {
        [] => message,
        last => format!("{message}: {}", last.join("; ")),
    }
}

fn ended(upid: &str, exit: Option<&str>) -> Result<(), Trouble> {
    match exit {
        Some("OK") => Ok(()),
        Some(exit) if exit.starts_with("WARNINGS:") => Ok(()),
        Some(exit) => {
            let kind = upid.split(':').nth(5).unwrap_or("task");
            Err(Trouble::Answered { code: 500, message: format!("{kind} failed: {exit}") })
        }
        None => Err(Trouble::Unanswered(format!("task {upid} has ended without a status"))),
    }
}

#[cfg(test)]
mod tests {
    use super::ended;
    use crate::proxmox::class::Class;

    #[test]
    fn a_task_succeeds_only_with_ok_or_warnings() {
        let upid = "UPID:pve1:0000:0000:0000:qmclone:9000:fleet@pve!ci:";
        assert!(ended(upid, Some("OK")).is_ok() && ended(upid, Some("WARNINGS: 2")).is_ok());
        let failed = ended(upid, Some("can't lock file '/x' - got timeout")).unwrap_err();
        assert_eq!(failed.message(), "qmclone failed: can't lock file '/x' - got timeout (500)");
        assert_eq!(failed.class(), Class::Transient);
        assert_eq!(
            ended(upid, Some("unable to create VM 105: config file already exists")).unwrap_err().class(),
            Class::Exists
        );
        assert_eq!(ended(upid, None).unwrap_err().class(), Class::Transient);
    }
}

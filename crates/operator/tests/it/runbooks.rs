//! The commands in the runbooks and in the guides of the advisor and of GitHub's runners work: those of virtpilot are run, those of kubectl are understood by the server and by kubectl.

use crate::commands::{virtpilot, virtpilot_as_given};
use crate::operator::{NAMESPACE, SERVICE, eventually};
use crate::profile_commands::{Cluster, digest, review};
use serde_json::json;
use std::path::Path;
use std::process::Command;

const RUNBOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/runbooks");
/// The profile of the examples.
const PROFILE: &str = "load-aware-rebalancing";
/// The profile of the guide.
const EXAMPLE: &str = "example-profile";
/// What a reader fills in, and what the test fills in.
const PLACEHOLDERS: [(&str, &str); 5] = [
    ("KIND", "Service"),
    ("NAME", "virt-platform-autopilot-metrics"),
    ("POOL", "worker"),
    ("NODE", "worker-0"),
    ("GROUP", "kubevirt"),
];
/// What kubectl says about a command line that it does not understand.
const MISUNDERSTOOD: [&str; 6] =
    ["unknown flag", "unknown shorthand", "unknown command", "invalid argument", "error parsing", "Usage:"];

/// The status of the profile of the guide.
fn of_example() -> serde_json::Value {
    let mut status = review(&digest('b'));
    status["items"][0]["targetRef"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": "example-config"});
    status
}

/// The commands of a page: lines of code blocks, and code between backticks.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut is_block) = (Vec::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            found.push(line.strip_prefix("$ ").unwrap_or(line).to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found.retain(|command| command.starts_with("virtpilot ") || command.starts_with("kubectl "));
    found
}

/// The words of a command as a shell splits them, without what follows a pipe.
fn words(command: &str) -> Vec<String> {
    let before_pipe = command.split(" | ").next().unwrap();
    let output = Command::new("sh").args(["-c", &format!("printf '%s\\n' {before_pipe}")]).output().unwrap();
    assert!(output.status.success(), "a shell does not understand {command:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn commands_are_found_in_blocks_and_between_backticks() {
    let page = "a `virtpilot plan` b `x`\n```\nkubectl get a | grep b\necho\n```\n`kubectl c`";
    assert_eq!(commands(page), ["virtpilot plan", "kubectl get a | grep b", "kubectl c"]);
    assert_eq!(words("kubectl -o 'a b' c | grep d"), ["kubectl", "-o", "a b", "c"]);
}

/// A command that changes nothing, and does not wait.
fn with_dry_run(mut words: Vec<String>) -> Vec<String> {
    for word in words.iter_mut().filter(|word| word.starts_with("--timeout=")) {
        "--timeout=1s".clone_into(word);
    }
    if words.iter().any(|word| ["patch", "annotate", "delete", "label", "create"].contains(&word.as_str())) {
        words.push("--dry-run=server".to_owned());
    }
    words
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_every_runbook_works() {
    let mut running = Cluster::start().await;
    running.apply(PROFILE, json!({})).await;
    running.status(PROFILE, review(&digest('a'))).await;
    running.apply(EXAMPLE, json!({})).await;
    running.status(EXAMPLE, of_example()).await;
    running.running.restart();
    let running = &running.running;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    let (kubeconfig, kubectl) = (running.playground.kubeconfig(), running.playground.folder().join("kubectl"));
    let (mut count, mut faults) = (0, Vec::new());
    let runbooks = std::fs::read_dir(Path::new(RUNBOOKS)).unwrap().map(|entry| entry.unwrap().path());
    let guides = ["../advisor.md", "../github-runners.md"].map(|guide| Path::new(RUNBOOKS).join(guide));
    for path in runbooks.chain(guides) {
        let page = path.file_name().unwrap().to_string_lossy().into_owned();
        for command in commands(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            let filled = PLACEHOLDERS.iter().fold(command.clone(), |text, (name, value)| text.replace(name, value));
            let words = words(&filled);
            let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let fault = if words[0] == "virtpilot" {
                // Only the embedded pack has profiles.
                let is_of_profile = [PROFILE, EXAMPLE].iter().any(|name| arguments.contains(name));
                let is_of_profile = is_of_profile || arguments == ["plan", "list"] || arguments[0] == "explain";
                let run = if is_of_profile { virtpilot_as_given } else { virtpilot };
                let output = run(Some(&kubeconfig), &arguments);
                // Nothing waits under this digest, and nothing was adopted.
                let is_expected = ["approve", "rollback"].contains(&arguments[0]) && output.code == Some(1);
                let is_understood = !output.stderr.contains("Usage:") && !output.stderr.contains("unexpected argument");
                // There is no fleet here; its commands say that.
                let is_of_fleet = matches!(arguments[..], ["fleet" | "queue", ..] | ["explain", "job", ..]);
                let is_done = matches!(output.code, Some(0 | 2 | 3)) || is_expected || is_of_fleet;
                (!is_done || !is_understood).then_some(output.stderr)
            } else {
                let mut words = with_dry_run(words[1..].to_vec());
                if !words.iter().any(|word| word == "-n" || word == "-A") {
                    words.extend(["-n".to_owned(), NAMESPACE.to_owned()]);
                }
                let output = Command::new(&kubectl).args(&words).output().unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                MISUNDERSTOOD.iter().any(|text| stderr.contains(text)).then_some(stderr)
            };
            faults.extend(fault.map(|fault| format!("{page}: {command}: {fault}")));
        }
    }
    assert!(count > 30, "{count} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    println!("{count} commands");
}

//! Where secrets are while a runner runs: in memory that only its user reads, and nowhere else.

use crate::scene::{CANARIES, JOB, JOB_DONE, Plan, Scene};
use bootstrap::{EndReason, Phase};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

/// The processes below this one, and itself.
fn family(of: u32) -> Vec<u32> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let id: Option<u32> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(id.zip(parent));
    }
    let mut all = vec![of];
    let mut next = 0;
    while next < all.len() {
        all.extend(parents.iter().filter(|(_, parent)| **parent == all[next]).map(|(id, _)| *id).collect::<Vec<_>>());
        next += 1;
    }
    all
}

/// Everything that is written about these processes where others could read it.
fn shown(processes: &[u32]) -> String {
    let read = |process: &u32, name: &str| std::fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
    let files = ["cmdline", "environ", "comm", "status", "mountinfo"];
    let texts = processes.iter().flat_map(|process| files.map(|file| read(process, file)));
    texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
}

#[test]
fn while_a_job_runs_no_secret_is_in_arguments_environment_or_on_the_disk() {
    let script = format!("{JOB}while [ ! -e go ]; do sleep 0.05; done\n{JOB_DONE}");
    let scene = Scene::start(&Plan { script, ..Plan::default() });
    scene.until("the job", |scene| scene.heard().reports.iter().any(|report| report.phase == Phase::Running));
    let processes = family(scene.guest.id());
    assert!(processes.len() >= 3, "the watchdog, the guest and the runner: {processes:?}");
    let shown = shown(&processes);
    assert!(shown.contains("run.sh") && shown.contains("RUNNER_MANUALLY_TRAP_SIG"), "{shown}");
    let jit = String::from_utf8_lossy(&std::fs::read(scene.runner().join(".credentials")).unwrap()).into_owned();
    for canary in CANARIES {
        assert!(!shown.contains(canary), "{canary}");
    }
    assert!(jit.contains("canary-09"), "the runner can read its credentials");
    let secrets = scene.memory.path().join("secrets");
    let modes: Vec<u32> = [&secrets, &secrets.join(".credentials_rsaparams")]
        .into_iter()
        .map(|path| std::fs::metadata(path).unwrap().mode() & 0o777)
        .collect();
    assert_eq!(modes, [0o700, 0o600]);
    for gone in ["guest.json", "user-data.txt"] {
        assert!(!scene.root.path().join(gone).exists(), "{gone} is left while the job runs");
    }
    // Files of the disk: the runner's folder has only links to its credentials.
    let mut folders = vec![scene.root.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
                assert!(!text.contains("canary-"), "{}", entry.path().display());
            }
        }
    }
    std::fs::write(scene.runner().join("go"), "").unwrap();
    let ended = scene.ended();
    assert_eq!(ended.end().reason, EndReason::JobCompleted);
    ended.has_no_secret();
}

#[test]
fn credentials_are_gone_while_a_job_runs_if_the_operator_wants_it() {
    let script = format!(
        "sleep 0.2\n{JOB}while [ -e .credentials_rsaparams ] || [ -e .credentials ]; do sleep 0.05; done\ncat .runner || exit 5\n{JOB_DONE}"
    );
    let plan = Plan { script, remove_credentials_at_job_start: true, ..Plan::default() };
    let ended = Scene::start(&plan).ended();
    assert_eq!((ended.end().reason, ended.end().exit_code), (EndReason::JobCompleted, Some(0)), "{}", ended.output);
    ended.has_no_secret();
}

/// Only root can give files and processes to another user.
#[test]
fn a_runner_of_another_user_reads_its_credentials_and_nothing_of_the_guest() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let script = format!(
        "{JOB}[ \"$(id -un)\" = nobody ] || exit 5\ncat .credentials >/dev/null || exit 6\ntouch _diag || exit 7\n\
         [ -z \"$(cat /proc/$PPID/environ 2>/dev/null)\" ] || exit 8\n{JOB_DONE}"
    );
    let ended = Scene::start(&Plan { script, user: Some("nobody".to_owned()), ..Plan::default() }).ended();
    assert_eq!((ended.end().reason, ended.end().exit_code), (EndReason::JobCompleted, Some(0)), "{}", ended.output);
    ended.has_no_secret();
}

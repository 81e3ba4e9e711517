//! Child processes, ports and files never outlive the playground.

use crate::marked_process::{ProcessMark, kill};
use playground::pseudo_random::PseudoRandom;
use rustix::process::Signal;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A port outside the kernel's ephemeral range, so that no other process takes it by chance.
fn unused_port(round: u32) -> u16 {
    let offset = (std::process::id() * 20 + round) % 10_000;
    let mut candidates = (0..10_000).map(|step| u16::try_from(20_000 + (offset + step) % 10_000).unwrap());
    candidates.find(|port| is_free(*port)).unwrap()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn up(mark: &ProcessMark, temporary: &Path, more: &[&str]) -> Command {
    let mut command = mark.playground();
    command.args(["up", "--output=json"]).args(more).env("TMPDIR", temporary);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn temporary_folder() -> tempfile::TempDir {
    // A short path, because sockets are created in it.
    tempfile::Builder::new().prefix("vp").tempdir().unwrap()
}

#[test]
fn a_playground_killed_at_any_moment_leaves_no_process_port_or_file() {
    // The first run fills the cache, the second measures a start on this machine; the kills are spread over that time.
    assert!(up(&ProcessMark::new("fill"), temporary_folder().path(), &[]).status().unwrap().success());
    let started = Instant::now();
    assert!(up(&ProcessMark::new("measure"), temporary_folder().path(), &[]).status().unwrap().success());
    let startup = started.elapsed();
    let mut random = PseudoRandom::new(20_261_115);
    let mut had_children = 0;
    for round in 0..20 {
        let mark = ProcessMark::new(&format!("killed-{round}"));
        let temporary = temporary_folder();
        let port = unused_port(round);
        let mut parent = up(&mark, temporary.path(), &["--stay", "--port", &port.to_string()]).spawn().unwrap();
        let delay = startup.mul_f64(1.2 * random.fraction());
        std::thread::sleep(delay);
        had_children += usize::from(mark.alive().len() > 2);
        kill(parent.id(), Signal::KILL);
        parent.wait().unwrap();
        mark.expect_gone();
        assert!(is_free(port), "round {round}, after {delay:?}: port {port} is still in use");
        let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "round {round}, after {delay:?}: {left:?}");
    }
    assert!(had_children > 5, "only {had_children} rounds had child processes to clean up");
}

#[test]
fn a_playground_killed_when_its_folder_appears_leaves_no_file() {
    for round in 0..5 {
        let (mark, temporary) = (ProcessMark::new(&format!("early-{round}")), temporary_folder());
        let mut parent = up(&mark, temporary.path(), &["--stay"]).spawn().unwrap();
        while std::fs::read_dir(temporary.path()).unwrap().next().is_none() {
            assert!(parent.try_wait().unwrap().is_none(), "it exited by itself");
        }
        kill(parent.id(), Signal::KILL);
        parent.wait().unwrap();
        mark.expect_gone();
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_supervisor_killed_with_its_parent_leaves_no_process() {
    let mark = ProcessMark::new("killed-both");
    let temporary = temporary_folder();
    let mut parent = up(&mark, temporary.path(), &["--stay"]).spawn().unwrap();
    let started = Instant::now();
    while !mark.alive().iter().any(|(_, name)| name == "kube-controller") {
        assert!(started.elapsed() < Duration::from_secs(120), "it did not start: {:?}", mark.alive());
        std::thread::sleep(Duration::from_millis(20));
    }
    for (id, name) in mark.alive() {
        if name.starts_with("virtpilot") {
            kill(id, Signal::KILL);
        }
    }
    parent.wait().unwrap();
    mark.expect_gone();
    // No process is left to remove the folder; the next playground does it.
    let count = || std::fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(count(), 1);
    assert!(up(&mark, temporary.path(), &[]).status().unwrap().success());
    assert_eq!(count(), 0);
}

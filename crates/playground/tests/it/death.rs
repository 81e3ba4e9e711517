//! Everything dies with its parent.

use crate::marked::Mark;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn kill(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
}

/// Numbers between 0 and 1 that are the same in every run.
fn chance(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    f64::from(u32::try_from(*seed >> 32).unwrap()) / f64::from(u32::MAX)
}

/// A port outside the range from which the kernel serves everybody else: nobody takes it by chance.
fn quiet_port(round: u32) -> u16 {
    let begin = (std::process::id() * 20 + round) % 10_000;
    let mut candidates = (0..10_000).map(|step| u16::try_from(20_000 + (begin + step) % 10_000).unwrap());
    candidates.find(|port| is_free(*port)).unwrap()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn up(mark: &Mark, place: &Path, more: &[&str]) -> Command {
    let mut command = mark.playground();
    command.args(["up", "--output=json"]).args(more).env("TMPDIR", place);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn place() -> tempfile::TempDir {
    // A short path: sockets are made in it.
    tempfile::Builder::new().prefix("vp").tempdir().unwrap()
}

#[test]
fn twenty_playgrounds_killed_at_any_moment_leave_no_process_no_port_and_no_file() {
    // The first one fills the cache, the second shows how long a start takes here and now: moments are spread over that.
    assert!(up(&Mark::new("fill"), place().path(), &[]).status().unwrap().success());
    let begun = Instant::now();
    assert!(up(&Mark::new("measure"), place().path(), &[]).status().unwrap().success());
    let whole = begun.elapsed();
    let mut seed = 20_261_115;
    let mut running = 0;
    for round in 0..20 {
        let mark = Mark::new(&format!("killed-{round}"));
        let place = place();
        let port = quiet_port(round);
        let mut parent = up(&mark, place.path(), &["--stay", "--port", &port.to_string()]).spawn().unwrap();
        let moment = whole.mul_f64(1.2 * chance(&mut seed));
        std::thread::sleep(moment);
        running += usize::from(mark.alive().len() > 2);
        kill(parent.id(), Signal::KILL);
        parent.wait().unwrap();
        mark.expect_gone();
        assert!(is_free(port), "round {round}, after {moment:?}: port {port} is taken");
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "round {round}, after {moment:?}: {left:?}");
    }
    assert!(running > 5, "there was something to leave in {running} rounds only");
}

#[test]
fn one_killed_as_soon_as_its_folder_appears_leaves_no_file() {
    for round in 0..5 {
        let (mark, place) = (Mark::new(&format!("early-{round}")), place());
        let mut parent = up(&mark, place.path(), &["--stay"]).spawn().unwrap();
        while std::fs::read_dir(place.path()).unwrap().next().is_none() {
            assert!(parent.try_wait().unwrap().is_none(), "it ended by itself");
        }
        kill(parent.id(), Signal::KILL);
        parent.wait().unwrap();
        mark.expect_gone();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_supervisor_killed_together_with_its_parent_leaves_no_process() {
    let mark = Mark::new("killed-both");
    let place = place();
    let mut parent = up(&mark, place.path(), &["--stay"]).spawn().unwrap();
    let begun = Instant::now();
    while !mark.alive().iter().any(|(_, name)| name == "kube-controller") {
        assert!(begun.elapsed() < Duration::from_secs(120), "it did not start: {:?}", mark.alive());
        std::thread::sleep(Duration::from_millis(20));
    }
    for (id, name) in mark.alive() {
        if name.starts_with("virtpilot") {
            kill(id, Signal::KILL);
        }
    }
    parent.wait().unwrap();
    mark.expect_gone();
    // Nobody was left to remove the folder; the next playground does it.
    let count = || std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(count(), 1);
    assert!(up(&mark, place.path(), &[]).status().unwrap().success());
    assert_eq!(count(), 0);
}

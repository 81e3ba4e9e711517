//! Everything dies with its parent.

use crate::marked::Mark;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn kill(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
}

/// Numbers between 0 and 1 that are the same in every run.
fn chance(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    f64::from(u32::try_from(*seed >> 32).unwrap()) / f64::from(u32::MAX)
}

/// A free port, so that it can be seen to be free again.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[test]
fn twenty_playgrounds_killed_at_any_moment_leave_no_process_no_port_and_no_file() {
    // The cache is filled before: moments are spread over the start of a control plane, not over a build.
    assert!(Mark::new("fill").playground().arg("prepare").stderr(Stdio::null()).status().unwrap().success());
    let mut seed = 20_261_115;
    let mut reached = [0; 3];
    for round in 0..20 {
        let mark = Mark::new(&format!("killed-{round}"));
        let place = tempfile::Builder::new().prefix("vp").tempdir().unwrap();
        let port = free_port();
        let begun = Instant::now();
        let mut parent = mark
            .playground()
            .args(["up", "--stay", "--output=json", "--port", &port.to_string()])
            .env("TMPDIR", place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moment = Duration::from_secs_f64(4.5 * chance(&mut seed));
        std::thread::sleep(moment.saturating_sub(begun.elapsed()));
        let alive = mark.alive();
        reached[if is_free(port) { usize::from(alive.len() > 2) } else { 2 }] += 1;
        kill(parent.id(), Signal::KILL);
        parent.wait().unwrap();
        mark.expect_gone();
        assert!(is_free(port), "round {round}, after {moment:?}: port {port} is taken");
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "round {round}, after {moment:?}: {left:?}");
    }
    // The moments were worth trying: before anything runs, while it starts, and when it listens.
    assert!(reached.iter().all(|count| *count > 0), "{reached:?}");
}

#[test]
fn a_supervisor_killed_together_with_its_parent_leaves_no_process() {
    let mark = Mark::new("killed-both");
    let place = tempfile::Builder::new().prefix("vp").tempdir().unwrap();
    let mut parent = mark
        .playground()
        .args(["up", "--stay", "--output=json"])
        .env("TMPDIR", place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
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
    let next =
        mark.playground().args(["up", "--output=json"]).env("TMPDIR", place.path()).stdin(Stdio::null()).output();
    assert!(next.unwrap().status.success());
    assert_eq!(count(), 0);
}

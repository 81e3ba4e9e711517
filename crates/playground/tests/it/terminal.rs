//! `up` as a person sees it: with a terminal, and without.

use crate::marked::{Mark, run, virtpilot};
use std::io::{Read, Write};
use std::process::Stdio;

#[test]
fn without_a_terminal_up_shows_what_works_as_typed_and_ends_well() {
    let mark = Mark::new("shown");
    let said = run(mark.program(virtpilot()).arg("up"));
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let typed: Vec<&str> = said.out.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let offered: Vec<&str> =
        said.out.lines().skip_while(|line| *line != "Try:").skip(2).take(3).map(str::trim).collect();
    assert_eq!(typed, offered);
    assert!(said.out.contains("worker-2   Ready"), "{}", said.out);
    assert!(said.out.contains("kubevirt-hyperconverged"), "{}", said.out);
    mark.expect_gone();
}

#[test]
fn the_story_of_the_demo_comes_true() {
    let mark = Mark::new("story");
    let said = run(mark.program(virtpilot()).args(["up", "--story", "--hco", "v1beta1"]));
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert_eq!(said.out.matches("  ✓ ").count(), 12, "{}", said.out);
    assert!(said.out.contains("It all came true."), "{}", said.out);
    mark.expect_gone();
}

#[test]
fn a_program_reads_where_the_playground_is() {
    let mark = Mark::new("json");
    let said = run(mark.program(virtpilot()).args(["up", "--output", "json", "--scene", "single-node"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let about: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(about["scene"]["name"], "single-node");
    assert!(about["kubernetes"].as_str().unwrap().starts_with("v1."));
    assert!(about["address"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    mark.expect_gone();
}

#[test]
fn in_a_terminal_up_stays_until_ctrl_c_and_leaves_nothing() {
    let mark = Mark::new("typed");
    // Python has what makes a terminal; it is needed to build anyway.
    let script = "import pty, sys; status = pty.spawn(sys.argv[1:]); sys.exit(status >> 8)";
    let mut person = mark
        .program("python3")
        .args(["-c", script])
        .arg(virtpilot())
        .arg("up")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut screen = person.stdout.take().unwrap();
    let mut seen = String::new();
    let mut bytes = [0; 4096];
    while !seen.contains("It stays up until Ctrl-C.") {
        let count = screen.read(&mut bytes).unwrap();
        assert!(count > 0, "it ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(mark.alive().iter().any(|(_, name)| name == "kube-apiserver"), "{:?}", mark.alive());
    person.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let mut rest = String::new();
    screen.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("It is gone: no process, no port, no file."), "{seen}{rest}");
    assert!(person.wait().unwrap().success(), "{rest}");
    mark.expect_gone();
}

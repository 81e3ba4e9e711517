//! The command `up`, with and without a terminal.

use crate::marked_process::{ProcessMark, run, virtpilot};
use std::io::{Read, Write};
use std::process::Stdio;

#[test]
fn without_a_terminal_up_runs_the_printed_commands_and_exits() {
    let mark = ProcessMark::new("shown");
    let output = run(mark.program(virtpilot()).arg("up"));
    assert_eq!(output.code, Some(0), "{}\n{}", output.out, output.err);
    let executed: Vec<&str> = output.out.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let printed: Vec<&str> =
        output.out.lines().skip_while(|line| *line != "Try:").skip(2).take(3).map(str::trim).collect();
    assert_eq!(executed, printed);
    assert!(output.out.contains("worker-2   Ready"), "{}", output.out);
    assert!(output.out.contains("kubevirt-hyperconverged"), "{}", output.out);
    mark.expect_gone();
}

#[test]
fn every_step_of_the_demo_succeeds() {
    let mark = ProcessMark::new("story");
    let output = run(mark.program(virtpilot()).args(["up", "--story", "--hco", "v1beta1"]));
    assert_eq!(output.code, Some(0), "{}\n{}", output.out, output.err);
    assert_eq!(output.out.matches("  ✓ ").count(), 13 + 6 + 8 + 5, "{}", output.out);
    let nodes: Vec<&str> =
        output.out.lines().filter_map(|line| line.trim().strip_suffix(" of 3 nodes updated")).collect();
    let expected = [0, 1, 2].map(|done| {
        [format!("worker-{done} is drained and restarts: {done}"), format!("worker-{done} is back: {}", done + 1)]
    });
    assert_eq!(nodes, expected.concat(), "{}", output.out);
    assert!(output.out.contains("All steps succeeded."), "{}", output.out);
    mark.expect_gone();
}

#[test]
fn json_output_describes_the_playground() {
    let mark = ProcessMark::new("json");
    let output = run(mark.program(virtpilot()).args(["up", "--output", "json", "--scene", "single-node"]));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let description: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(description["scene"]["name"], "single-node");
    assert!(description["kubernetes"].as_str().unwrap().starts_with("v1."));
    assert!(description["address"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    mark.expect_gone();
}

#[test]
fn in_a_terminal_up_runs_until_ctrl_c_and_leaves_nothing() {
    let mark = ProcessMark::new("typed");
    // Python can open a pseudo-terminal, and it is required anyway.
    let script = "import pty, sys; status = pty.spawn(sys.argv[1:]); sys.exit(status >> 8)";
    let mut terminal = mark
        .program("python3")
        .args(["-c", script])
        .arg(virtpilot())
        .arg("up")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let mut shown = String::new();
    let mut bytes = [0; 4096];
    while !shown.contains("The playground runs until Ctrl-C.") {
        let count = screen.read(&mut bytes).unwrap();
        assert!(count > 0, "it exited: {shown}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(mark.alive().iter().any(|(_, name)| name == "kube-apiserver"), "{:?}", mark.alive());
    terminal.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let mut rest = String::new();
    screen.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("The playground has stopped: no process, no port and no file is left."), "{shown}{rest}");
    assert!(terminal.wait().unwrap().success(), "{rest}");
    mark.expect_gone();
}

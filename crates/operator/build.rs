//! Tells the binary which commit and target it was built from.

use std::process::Command;

fn main() {
    // Git appends to this file with every commit and checkout; outside a clone it is not there.
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let commit = commit.ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=VIRTPILOT_COMMIT={}", commit.unwrap_or_else(|| "unknown commit".to_owned()));
    println!("cargo::rustc-env=VIRTPILOT_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

//! Records the commit and the target of the build, and embeds the asset pack.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> std::io::Result<()> {
    // Git appends to this file with every commit and checkout; it does not exist outside a clone.
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let commit = commit.ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=VIRTPILOT_COMMIT={}", commit.unwrap_or_else(|| "unknown commit".to_owned()));
    println!("cargo::rustc-env=VIRTPILOT_TARGET={}", std::env::var("TARGET").unwrap_or_default());

    make_small()?;

    let assets = std::path::absolute("../../assets")?;
    println!("cargo::rerun-if-changed={}", assets.display());
    let mut files = Vec::new();
    collect(&assets, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&assets).unwrap_or(&file).display().to_string();
        let _ = writeln!(table, "    ({name:?}, include_bytes!({:?})),", file.display().to_string());
    }
    table.push_str("]\n");
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("assets.rs"), table)
}

/// The code is most of what the operator has in memory. Rust's own linker, which is the default on this target, merges functions with the
/// same code, packs the list of addresses that are adjusted at the start, and puts code that seldom runs behind the rest.
fn make_small() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=seldom.ld");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|actual| actual == value);
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        let script = std::path::absolute("seldom.ld")?;
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all,-z,pack-relative-relocs");
        // An argument of its own, because a comma in the path would separate arguments after -Wl.
        println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

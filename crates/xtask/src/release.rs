//! Builds static release binaries, one for each platform whose Rust target is installed.

mod static_binary;

use crate::workspace::{Workspace, output};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The platforms, and the Rust targets for them; the first that is installed is used. With glibc the binary is static, too.
const PLATFORMS: [(&str, [&str; 2]); 2] = [
    ("amd64", ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"]),
    ("arm64", ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"]),
];

/// The binary of one platform.
pub(crate) struct Binary {
    pub(crate) architecture: &'static str,
    pub(crate) content: Vec<u8>,
}

/// The program of a package for every platform that can be built for.
pub(crate) fn binaries(workspace: &Workspace, package: &str, program: &str) -> anyhow::Result<Vec<Binary>> {
    let sysroot = output(&workspace.root, "rustc", &["--print", "sysroot"])?;
    let installed = |target: &&&str| Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir();
    let mut binaries = Vec::new();
    for (architecture, targets) in PLATFORMS {
        match targets.iter().find(installed) {
            Some(target) => {
                println!("building {program} for {architecture} ({target})");
                binaries.push(Binary { architecture, content: build(workspace, package, program, target)? });
            }
            None => println!("not for {architecture}: none of the Rust targets {} is installed", targets.join(", ")),
        }
    }
    if binaries.is_empty() {
        bail!("nothing was built: install one of these targets with rustup target add");
    }
    Ok(binaries)
}

/// Builds the static release binary for a target.
fn build(workspace: &Workspace, package: &str, program: &str, target: &str) -> anyhow::Result<Vec<u8>> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.root.join("target"), PathBuf::from);
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set; set one")?;
    // A binary must not depend on where it was built.
    let moved = [(folder.as_path(), "/target"), (home.as_path(), "/cargo"), (workspace.root.as_path(), "/virtpilot")];
    let moved = moved.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let flags = [&["-Ctarget-feature=+crt-static".to_owned()], &moved[..]].concat();
    let built = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", package, "--bin", program, "--target", target])
        // Unlike RUSTFLAGS, these may contain spaces.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env_remove("RUSTFLAGS")
        .current_dir(&workspace.root)
        .status()
        .context("could not run cargo: is it installed?")?;
    if !built.success() {
        bail!("the build for {target} failed; the lines above say why");
    }
    read(&folder.join(target).join("release").join(program))
}

/// The bytes of a program that needs no other file to run.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let binary = std::fs::read(path).with_context(|| format!("could not read {}", path.display()))?;
    if let Err(why) = static_binary::check(&binary) {
        bail!("{} cannot run alone: {why}", path.display());
    }
    Ok(binary)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_program_that_needs_libraries_of_the_machine_is_not_released() {
        // This test is linked dynamically.
        let error = read(&std::env::current_exe().unwrap()).unwrap_err().to_string();
        assert!(error.ends_with("cannot run alone: it is linked dynamically"), "{error}");
    }
}

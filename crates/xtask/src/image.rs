//! Builds the operator's image without a container engine: one static binary for each platform, and its bill of materials.

mod layout;
mod static_binary;

use crate::sbom;
use crate::workspace::{Workspace, output};
use anyhow::{Context, bail};
use layout::{Binary, Image};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The platforms, and the Rust targets for them; the first that is installed is used. With glibc the binary is static, too.
const PLATFORMS: [(&str, [&str; 2]); 2] = [
    ("amd64", ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"]),
    ("arm64", ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"]),
];

/// Builds the binaries and writes an OCI image layout to a folder that does not exist yet.
pub(crate) fn write(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        bail!("{} exists; remove it, or name another folder", folder.display());
    }
    let sysroot = output(&workspace.root, "rustc", &["--print", "sysroot"])?;
    let installed = |target: &&&str| Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir();
    let mut binaries = Vec::new();
    for (architecture, targets) in PLATFORMS {
        match targets.iter().find(installed) {
            Some(target) => {
                println!("building for {architecture} ({target})");
                binaries.push(Binary { architecture, content: build(workspace, target)? });
            }
            None => println!("not for {architecture}: none of the Rust targets {} is installed", targets.join(", ")),
        }
    }
    let image = Image {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: output(&workspace.root, "git", &["rev-parse", "HEAD"])?.trim().to_owned(),
        sbom: sbom::text(workspace)?,
    };
    let files = layout::files(&image, &binaries)?;
    for (path, content) in &files.files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(&path, content).with_context(|| format!("could not write {}", path.display()))?;
    }
    println!("wrote {}: {} {}", folder.display(), image.version, files.digest);
    Ok(())
}

/// Builds the static release binary for a target.
fn build(workspace: &Workspace, target: &str) -> anyhow::Result<Vec<u8>> {
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
        .args(["build", "--release", "--locked", "--package=operator", "--bin=virtpilot", "--target", target])
        // Unlike RUSTFLAGS, these may contain spaces.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env_remove("RUSTFLAGS")
        .current_dir(&workspace.root)
        .status()
        .context("could not run cargo: is it installed?")?;
    if !built.success() {
        bail!("the build for {target} failed; the lines above say why");
    }
    let path = folder.join(target).join("release/virtpilot");
    let binary = std::fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
    if let Err(why) = static_binary::check(&binary) {
        bail!("{} cannot run alone: {why}", path.display());
    }
    Ok(binary)
}

//! Builds the operator's image without a container engine: one static binary for each platform, and its bill of materials.

mod layout;

use crate::workspace::{Workspace, output};
use crate::{release, sbom};
use anyhow::{Context, bail};
use layout::Image;
use std::path::Path;

/// Builds the binaries and writes an OCI image layout to a folder that does not exist yet.
pub(crate) fn write(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        bail!("{} exists; remove it, or name another folder", folder.display());
    }
    let binaries = release::binaries(workspace, "operator", "virtpilot")?;
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

//! `cargo xtask gen-pack`: an asset pack of realistic size, for benchmarks and tests on a real API server.

mod attachments;
mod catalogue;
mod kinds;

use crate::generated::role;
use crate::pack;
use anyhow::{Context, bail};
use kinds::{EACH, KINDS};
use std::collections::BTreeMap;
use std::path::Path;

const CATALOGUE: &str = "active/metadata.yaml";

/// Writes the pack and the operator's role for it. A pack that was not written by this command is never overwritten.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let existing = folder.join(CATALOGUE);
    if existing.exists() && !std::fs::read_to_string(&existing).is_ok_and(|text| text.starts_with(catalogue::HEADER)) {
        bail!("{} belongs to another pack: use a folder that is empty or does not exist", existing.display());
    }
    for (path, text) in files()? {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// All files by their path in the folder.
fn files() -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = attachments::files();
    files.insert(CATALOGUE.to_owned(), catalogue::text());
    for kind in &KINDS {
        // One file per asset although four are identical: parsing them is part of the operator's start.
        files.extend((0..EACH).map(|object| (catalogue::path(kind, object), kind.template.to_owned())));
    }
    let catalog = pack::load(files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect())?;
    files.insert("role.yaml".to_owned(), role::of(&catalog)?);
    Ok(files)
}

#[cfg(test)]
mod tests;

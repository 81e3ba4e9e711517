//! `cargo xtask gen-pack`: an asset pack of a real platform's size, for benches and tests on a real API server.

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

/// Writes the pack, and beside it the role with which an operator can keep it. A pack somebody else made is left alone.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let old = folder.join(CATALOGUE);
    if old.exists() && !std::fs::read_to_string(&old).is_ok_and(|text| text.starts_with(catalogue::MARK)) {
        bail!("{} is of another pack: name a folder that is empty or does not exist", old.display());
    }
    for (path, text) in files()? {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// Every file by its path from the folder.
fn files() -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = attachments::files();
    files.insert(CATALOGUE.to_owned(), catalogue::text());
    for kind in &KINDS {
        // One file per asset although four are alike: parsing them is part of what a start costs.
        files.extend((0..EACH).map(|object| (catalogue::path(kind, object), kind.template.to_owned())));
    }
    let catalog = pack::load(files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect())?;
    files.insert("role.yaml".to_owned(), role::of(&catalog)?);
    Ok(files)
}

#[cfg(test)]
mod tests;

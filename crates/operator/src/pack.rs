//! The asset pack: the one inside this binary, or a folder.

use anyhow::{Context, bail};
use catalog::{Catalog, Files};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file of `assets/`, put here by the build script.
const BUILT_IN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file of a pack may not be larger; the largest known is a dashboard of some hundred kilobytes.
const LARGEST: u64 = 10 * 1024 * 1024;

/// Which pack a command is about.
#[derive(clap::Args)]
pub(crate) struct Pack {
    /// A folder with an asset pack, instead of the one inside this binary
    #[arg(long, value_name = "FOLDER")]
    assets_dir: Option<PathBuf>,
}

impl Pack {
    /// Loads it; what is wrong in it is told with file and line.
    pub(crate) fn load(&self) -> anyhow::Result<Catalog> {
        load(self.assets_dir.as_deref())
    }
}

/// Loads the pack in a folder, or the one inside this binary.
fn load(folder: Option<&Path>) -> anyhow::Result<Catalog> {
    let (files, place) = match folder {
        None => (
            BUILT_IN.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect(),
            "this binary".to_owned(),
        ),
        Some(folder) => {
            let mut files = BTreeMap::new();
            read(folder, "", &mut files)?;
            (files, folder.display().to_string())
        }
    };
    Catalog::load(Files::new(files)).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| format!("  {fault}")).collect();
        anyhow::anyhow!(
            "the asset pack in {place} cannot be used:\n{}\n  fix: correct these lines, then start again",
            lines.join("\n")
        )
    })
}

fn read(folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("could not read the asset pack in {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("could not read {}", folder.display()))?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        if path.is_dir() {
            read(&path, &name, files)?;
        } else {
            let size = entry.metadata().with_context(|| format!("could not read {}", path.display()))?.len();
            if size > LARGEST {
                bail!("{} has {size} bytes, {LARGEST} are allowed", path.display());
            }
            files.insert(name, std::fs::read(&path).with_context(|| format!("could not read {}", path.display()))?);
        }
    }
    Ok(())
}

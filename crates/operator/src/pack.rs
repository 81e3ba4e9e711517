//! The asset pack: the embedded one, or a folder.

use anyhow::{Context, bail};
use catalog::{Catalog, Files};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file of `assets/`, embedded by the build script.
const BUILT_IN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The largest allowed file of a pack; the largest known one is a dashboard of some hundred kilobytes.
const LARGEST: u64 = 10 * 1024 * 1024;

/// Selects the asset pack of a command.
#[derive(clap::Args)]
pub(crate) struct Pack {
    /// A folder with an asset pack to use instead of the embedded one
    #[arg(long, value_name = "FOLDER")]
    assets_dir: Option<PathBuf>,
}

impl Pack {
    /// Loads it; an error names file and line.
    pub(crate) fn load(&self) -> anyhow::Result<Catalog> {
        load(self.assets_dir.as_deref())
    }
}

/// Loads the pack in a folder, or the embedded one.
fn load(folder: Option<&Path>) -> anyhow::Result<Catalog> {
    let (files, location) = match folder {
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
            "the asset pack in {location} is invalid:\n{}\n  fix: correct these lines, then run the command again",
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
                bail!(
                    "{} has {size} bytes, at most {LARGEST} are allowed\n  fix: make it smaller or remove it from the asset pack",
                    path.display()
                );
            }
            files.insert(name, std::fs::read(&path).with_context(|| format!("could not read {}", path.display()))?);
        }
    }
    Ok(())
}

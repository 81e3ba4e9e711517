//! The asset pack: the embedded one, or a folder.

use crate::failure::Several;
use anyhow::{Context, anyhow, bail};
use catalog::{Catalog, Fault, Files};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file of `assets/`, embedded by the build script.
const BUILT_IN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The largest allowed file of a pack; the largest known one is a dashboard of some hundred kilobytes.
const LARGEST: u64 = 10 * 1024 * 1024;

/// The most files of a pack; the largest known one has some hundred.
const MOST: usize = 10_000;

/// The deepest file of a pack: a link to a parent folder would have no end.
const DEEPEST: usize = 16;

/// Selects the asset pack of a command.
#[derive(Clone, clap::Args)]
pub(crate) struct Pack {
    /// A folder with an asset pack to use instead of the embedded one
    #[arg(long, value_name = "FOLDER")]
    assets_dir: Option<PathBuf>,
}

impl Pack {
    /// Whether it is another one than the embedded one.
    pub(crate) fn is_chosen(&self) -> bool {
        self.assets_dir.is_some()
    }

    /// Where it is, for messages.
    fn location(&self) -> String {
        self.assets_dir.as_ref().map_or("this binary".to_owned(), |folder| folder.display().to_string())
    }

    /// Loads it; an error names file and line.
    pub(crate) fn load(&self) -> anyhow::Result<Catalog> {
        load(self.assets_dir.as_deref(), &self.location())
    }

    /// The error for a pack that no role can be made for.
    pub(crate) fn without_role(&self, problems: &[String]) -> Several {
        let location = self.location();
        Several(
            problems.iter().map(|why| format!("there is no role for the asset pack in {location}: {why}")).collect(),
        )
    }
}

/// The embedded pack.
pub(crate) fn embedded() -> anyhow::Result<Catalog> {
    load(None, "this binary")
}

/// The faults of the pack in a folder.
pub(crate) fn faults(folder: &Path) -> anyhow::Result<Vec<Fault>> {
    let mut files = BTreeMap::new();
    read(folder, folder, "", &mut files)?;
    Ok(Catalog::load(Files::new(files)).err().unwrap_or_default())
}

/// Loads the pack in a folder, or the embedded one.
fn load(folder: Option<&Path>, location: &str) -> anyhow::Result<Catalog> {
    let files = match folder {
        None => Files::embedded(BUILT_IN),
        Some(folder) => {
            let mut files = BTreeMap::new();
            read(folder, folder, "", &mut files)?;
            Files::new(files)
        }
    };
    Catalog::load(files).map_err(|faults| {
        Several(faults.iter().map(|fault| format!("the asset pack in {location} is invalid: {fault}")).collect()).into()
    })
}

fn read(root: &Path, folder: &Path, below: &str, files: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        anyhow!("could not read the asset pack in {}: {error}; give the folder of an asset pack", folder.display())
    })?;
    for entry in entries {
        let entry = entry.with_context(|| format!("could not read {}", folder.display()))?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        // Links are followed: a ConfigMap that is mounted as a folder consists of them.
        let about = std::fs::metadata(&path).with_context(|| format!("could not read {}", path.display()))?;
        if about.is_dir() {
            read(root, &path, &name, files)?;
        } else {
            let size = about.len();
            if !about.is_file() || files.len() == MOST || name.split('/').count() > DEEPEST {
                bail!(
                    "{} is not an asset pack, which has at most {MOST} plain files in folders that are at most {DEEPEST} deep; \
                     the first other one is {name}",
                    root.display()
                );
            }
            if size > LARGEST {
                bail!(
                    "{} has {size} bytes, at most {LARGEST} are allowed; make it smaller or remove it from the asset pack",
                    path.display()
                );
            }
            files.insert(name, std::fs::read(&path).with_context(|| format!("could not read {}", path.display()))?);
        }
    }
    Ok(())
}

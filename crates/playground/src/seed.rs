//! etcd data with all CRDs installed: every new cluster starts from a copy of it.

use crate::binaries::Binaries;
use crate::cache::{Cache, Key};
use crate::control_plane::{ControlPlane, Launch};
use crate::crds::{self, Crds, Variants};
use crate::progress::Progress;
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};

/// Part of the cache key; increase it when the content of a seed changes.
const FORMAT_VERSION: &str = "1";

/// Finds the cached seed for these programs and CRDs or creates it: starts a control plane, installs the CRDs, shuts it down.
pub async fn ensure(
    binaries: &Binaries,
    crds: &Crds,
    variants: &Variants,
    cache: &Cache,
    progress: Progress,
) -> Result<PathBuf, UserError> {
    let definitions = crds.select(variants)?;
    let texts = definitions.iter().map(ToString::to_string);
    let key = Key::of([FORMAT_VERSION.to_owned(), binaries.fingerprint()].into_iter().chain(texts));
    let entry = cache.entry("seeds", &key);
    if entry.is_dir() {
        return Ok(entry);
    }
    let mut step = progress.step(format!("seed with {} CRDs", definitions.len()));
    let _lock = cache.lock("seeds", &key, || step.message("waiting for another run that is creating it")).await?;
    if entry.is_dir() {
        return Ok(entry);
    }
    let launch = Launch { binaries, seed: None, fsync: false, port: None, keep: false };
    let control_plane = ControlPlane::start(&launch).await?;
    step.update("installing");
    crds::install(&control_plane.client(), &definitions).await?;
    let staging = cache.staging_folder("seeds")?;
    control_plane.shut_down(|data| copy(data, staging.path())).await?;
    let entry = cache.install(staging, "seeds", &key)?;
    step.done("established");
    Ok(entry)
}

/// Copies etcd's data folder.
pub fn copy(from: &Path, to: &Path) -> Result<(), UserError> {
    let failed = |path: &Path, error| user_error::io("copy etcd data to", path, error);
    std::fs::create_dir_all(to).map_err(|error| failed(to, error))?;
    for entry in std::fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else if source.extension().is_none_or(|extension| extension != "tmp") {
            // etcd preallocates its next log file as *.tmp (64 MB of zeros) and creates it again when needed.
            std::fs::copy(&source, &target).map_err(|error| failed(&target, error))?;
        }
    }
    Ok(())
}

//! etcd data in which the CRDs already stand: a clean cluster starts from a copy of it.

use crate::binaries::Binaries;
use crate::cache::{Cache, Key};
use crate::control_plane::{ControlPlane, Launch};
use crate::crds::{self, Crds, Variants};
use crate::progress::Progress;
use crate::trouble::{self, Trouble};
use std::path::{Path, PathBuf};

/// Part of the cache's key: a change in what a seed holds makes another.
const RECIPE: &str = "1";

/// Finds the seed for these programs and CRDs, or grows it: a control plane is started, filled and closed.
pub async fn ensure(
    binaries: &Binaries,
    crds: &Crds,
    variants: &Variants,
    cache: &Cache,
    progress: Progress,
) -> Result<PathBuf, Trouble> {
    let definitions = crds.select(variants)?;
    let texts = definitions.iter().map(ToString::to_string);
    let key = Key::of([RECIPE.to_owned(), binaries.fingerprint()].into_iter().chain(texts));
    let place = cache.entry("seeds", &key);
    if place.is_dir() {
        return Ok(place);
    }
    let mut step = progress.step(format!("seed with {} CRDs", definitions.len()));
    let _lock = cache.lock("seeds", &key, || step.say("another run is growing it, waiting")).await?;
    if place.is_dir() {
        return Ok(place);
    }
    let launch = Launch { binaries, seed: None, fsync: false, port: None, keep: false };
    let control_plane = ControlPlane::start(&launch).await?;
    step.update("installing");
    crds::install(&control_plane.client(), &definitions).await?;
    let bench = cache.workbench("seeds")?;
    control_plane.close(|data| copy(data, bench.path())).await?;
    let place = cache.install(bench, "seeds", &key)?;
    step.done("established");
    Ok(place)
}

/// Copies etcd's data folder.
pub fn copy(from: &Path, to: &Path) -> Result<(), Trouble> {
    let failed = |path: &Path, error| trouble::io("copy etcd data to", path, error);
    std::fs::create_dir_all(to).map_err(|error| failed(to, error))?;
    for entry in std::fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else if source.extension().is_none_or(|extension| extension != "tmp") {
            // etcd lays out its next log file ahead of time as *.tmp, 64 MB of zeros; it makes another.
            std::fs::copy(&source, &target).map_err(|error| failed(&target, error))?;
        }
    }
    Ok(())
}

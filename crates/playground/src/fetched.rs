//! Downloads that are kept in the cache.

use crate::cache::{Cache, Key};
use crate::progress::Progress;
use crate::user_error::UserError;
use std::path::{Path, PathBuf};

/// An entry of the cache that is complete if it has a file.
pub(crate) struct Fetched<'a> {
    pub(crate) kind: &'a str,
    pub(crate) file: &'a str,
    pub(crate) inputs: &'a [&'a str],
    pub(crate) what: &'a str,
}

impl Fetched<'_> {
    /// The path of the file; if it is not there, everything is fetched into a folder that then becomes the entry.
    pub(crate) async fn ensure(
        &self,
        cache: &Cache,
        progress: Progress,
        fetch: impl AsyncFnOnce(&Path) -> Result<(), UserError>,
    ) -> Result<PathBuf, UserError> {
        let key = Key::of(self.inputs);
        let path = cache.entry(self.kind, &key).join(self.file);
        if !path.is_file() {
            let mut step = progress.step(self.what);
            let _lock =
                cache.lock(self.kind, &key, || step.message("waiting for another run that is fetching it")).await?;
            if !path.is_file() {
                let staging = cache.staging_folder(self.kind)?;
                fetch(staging.path()).await?;
                cache.install(staging, self.kind, &key)?;
            }
            step.done("fetched");
        }
        Ok(path)
    }
}

//! What all machines have on their disks: the archive with the runner.

use crate::process::playground_program;
use crate::user_error::{self, UserError};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The image, in a folder that is removed with it.
pub(super) struct Image {
    folder: TempDir,
    archive: PathBuf,
    sha256: String,
}

impl Image {
    /// An archive whose `run.sh` starts the program in place of the runner, which trusts this authority and takes so long for a job.
    pub(super) fn create(ca: &str, job: Duration) -> Result<Image, UserError> {
        let failed = |error| user_error::io("write", Path::new("the archive of the runner"), error);
        let folder = tempfile::Builder::new().prefix("virtpilot-machines-").tempdir().map_err(failed)?;
        let program = playground_program()?;
        let run = format!(
            "#!/bin/sh\nexec '{}' runner --seconds {} --folder \"$(dirname \"$0\")\"\n",
            program.display(),
            job.as_secs_f64()
        );
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, content) in [("./run.sh", run.as_str()), ("./ca.pem", ca)] {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_size(u64::try_from(content.len()).unwrap_or_default());
            builder.append_data(&mut header, path, content.as_bytes()).map_err(failed)?;
        }
        let bytes = builder.into_inner().and_then(GzEncoder::finish).map_err(failed)?;
        let archive = folder.path().join("actions-runner.tar.gz");
        std::fs::write(&archive, &bytes).map_err(failed)?;
        let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Image { folder, archive, sha256 })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its path, and its SHA-256.
    pub(super) fn archive(&self) -> (&Path, &str) {
        (&self.archive, &self.sha256)
    }
}

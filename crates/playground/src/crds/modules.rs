//! CRDs that a Go module contains as YAML.

use super::table::{Module, Row, Source};
use super::yaml;
use crate::files;
use crate::go::{Go, OutputLine};
use crate::tools::{Tools, required_version};
use crate::user_error::{self, UserError};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Downloads modules; Go verifies those of go.sum by it and others by the checksum database.
#[derive(Debug)]
pub(super) struct Modules {
    go: Go,
    go_mod: String,
    _folder: TempDir,
}

/// The CRDs of a module at one version, and its checksums.
#[derive(Debug)]
pub(super) struct LoadedModule {
    pub(super) crds: Vec<(Row, Value)>,
    pub(super) sum: String,
    pub(super) go_mod_sum: String,
}

/// The fields used of the output of `go mod download -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
    sum: String,
    go_mod_sum: String,
}

impl Modules {
    /// Works on a copy of go.mod and go.sum, so that Go never changes those of the checkout.
    pub(super) fn of(tools: &Tools) -> Result<Modules, UserError> {
        let folder =
            tempfile::tempdir().map_err(|error| user_error::io("create a folder in", &std::env::temp_dir(), error))?;
        for (name, text) in [("go.mod", &tools.crds_mod), ("go.sum", &tools.crds_sum)] {
            files::write(&folder.path().join(name), text)?;
        }
        let go = Go::find(folder.path(), "to download the modules that contain third-party CRDs")?;
        Ok(Modules { go, go_mod: tools.crds_mod.clone(), _folder: folder })
    }

    /// The version of a module that go.mod requires.
    pub(super) fn pinned(&self, module: &Module) -> Result<&str, UserError> {
        required_version(&self.go_mod, &module.path).ok_or_else(|| {
            UserError::new(
                format!("the module {} is in tools/crds/crds.toml but not in tools/crds/go.mod", module.path),
                "add the module with its version to go.mod and its checksum to go.sum",
            )
        })
    }

    /// Downloads a version of a module and reads its CRDs.
    pub(super) async fn load(&self, module: &Module, version: &str) -> Result<LoadedModule, UserError> {
        let wanted = format!("{}@{version}", module.path);
        let output = self.output(&["mod", "download", "-json", &wanted]).await?;
        let downloaded: Downloaded = serde_json::from_str(&output).map_err(|error| {
            UserError::new(format!("go did not report where it stored {}", module.path), "run again")
                .with_source(error)
                .with_detail(&output)
        })?;
        let mut crds = Vec::new();
        for (crd, file) in &module.crds {
            let row = Row { crd: crd.clone(), variant: None, source: Source::Module(module.path.clone()) };
            crds.push((row, read(crd, &downloaded.dir, file, &wanted)?));
        }
        Ok(LoadedModule { crds, sum: downloaded.sum, go_mod_sum: downloaded.go_mod_sum })
    }

    /// What `go ARGS` prints to standard output.
    pub(super) async fn output(&self, args: &[&str]) -> Result<String, UserError> {
        let mut output = String::new();
        self.go
            .run(args, |line| {
                if let OutputLine::Out(text) = line {
                    output.push_str(text);
                    output.push('\n');
                }
            })
            .await?;
        Ok(output)
    }
}

fn read(crd: &str, folder: &Path, file: &str, module: &str) -> Result<Value, UserError> {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => UserError::new(
            format!("{module} no longer contains {file}"),
            "find where the module keeps that CRD now, and correct the entry in tools/crds/crds.toml",
        ),
        _ => user_error::io("read the CRD", &path, error),
    })?;
    yaml::find_crd(&text, crd, file)
}

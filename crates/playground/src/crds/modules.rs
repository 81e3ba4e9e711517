//! CRDs that a pinned Go module contains as YAML.

use super::table::{Row, Source, Table};
use crate::files;
use crate::go::{Go, OutputLine};
use crate::progress::Step;
use crate::tools::{Tools, required_version};
use crate::user_error::{self, UserError};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The fields used of the output of `go mod download -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    dir: PathBuf,
}

/// Downloads every module (Go verifies go.sum) and saves its CRDs.
pub(super) async fn fetch(
    table: &Table,
    tools: &Tools,
    step: &mut Step,
    mut save: impl FnMut(Row, Value) -> Result<(), UserError>,
) -> Result<(), UserError> {
    let folder =
        tempfile::tempdir().map_err(|error| user_error::io("create a folder in", &std::env::temp_dir(), error))?;
    for (name, text) in [("go.mod", &tools.crds_mod), ("go.sum", &tools.crds_sum)] {
        files::write(&folder.path().join(name), text)?;
    }
    let go = Go::find(folder.path(), "to download the modules that contain third-party CRDs")?;
    for (index, module) in table.modules.iter().enumerate() {
        step.update(format_args!("{} ({} of {})", module.path, index + 1, table.modules.len()));
        let version = required_version(&tools.crds_mod, &module.path).ok_or_else(|| {
            UserError::new(
                format!("the module {} is in tools/crds/crds.toml but not in tools/crds/go.mod", module.path),
                "add the module with its version to go.mod and its checksum to go.sum",
            )
        })?;
        let mut output = String::new();
        go.run(&["mod", "download", "-json", &format!("{}@{version}", module.path)], |line| {
            if let OutputLine::Out(text) = line {
                output.push_str(text);
            }
        })
        .await?;
        let downloaded: Downloaded = serde_json::from_str(&output).map_err(|error| {
            UserError::new(format!("go did not report where it stored {}", module.path), "run again")
                .with_source(error)
                .with_detail(&output)
        })?;
        for (crd, file) in &module.crds {
            let row = Row { crd: crd.clone(), variant: None, source: Source::Module(downloaded.path.clone()) };
            save(row, read(crd, &downloaded.dir.join(file))?)?;
        }
    }
    Ok(())
}

fn read(crd: &str, path: &Path) -> Result<Value, UserError> {
    let text = std::fs::read_to_string(path).map_err(|error| user_error::io("read the CRD", path, error))?;
    let fix = "correct the entry in tools/crds/crds.toml";
    // The largest file has a few hundred thousand nodes; the files are verified by checksum, so no budget is needed.
    let options = serde_saphyr::options! { budget: None, legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options).map_err(|error| {
        UserError::new(format!("{} is not YAML", path.display()), fix).with_detail(error.to_string())
    })?;
    let found = documents.into_iter().find(|document| document["metadata"]["name"] == crd);
    found.ok_or_else(|| UserError::new(format!("{} does not contain the CRD {crd}", path.display()), fix))
}

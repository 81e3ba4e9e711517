//! CRDs that stand as YAML in a pinned Go module.

use super::table::{Row, Source, Table};
use crate::go::{Go, Line};
use crate::progress::Step;
use crate::tools::{Tools, required_version};
use crate::trouble::{self, Trouble};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What `go mod download -json` says of one module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    dir: PathBuf,
}

/// Downloads every module (Go checks go.sum) and hands over its CRDs.
pub(super) async fn fetch(
    table: &Table,
    tools: &Tools,
    step: &mut Step,
    mut save: impl FnMut(Row, Value) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let folder = tempfile::tempdir().map_err(|error| trouble::io("make a folder in", &std::env::temp_dir(), error))?;
    for (name, text) in [("go.mod", &tools.crds_mod), ("go.sum", &tools.crds_sum)] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).map_err(|error| trouble::io("write", &path, error))?;
    }
    let go = Go::find(folder.path(), "to fetch the modules that hold foreign CRDs")?;
    for (index, module) in table.modules.iter().enumerate() {
        step.update(format_args!("{} ({} of {})", module.path, index + 1, table.modules.len()));
        let version = required_version(&tools.crds_mod, &module.path).ok_or_else(|| {
            Trouble::new(
                format!("tools/crds/crds.toml names the module {} and tools/crds/go.mod does not", module.path),
                "add the module with its version to go.mod and its checksum to go.sum",
            )
        })?;
        let mut answer = String::new();
        go.run(&["mod", "download", "-json", &format!("{}@{version}", module.path)], |line| {
            if let Line::Out(text) = line {
                answer.push_str(text);
            }
        })
        .await?;
        let downloaded: Downloaded = serde_json::from_str(&answer).map_err(|error| {
            Trouble::new(format!("go did not say where it put {}", module.path), "run again")
                .from(error)
                .because(&answer)
        })?;
        for (crd, file) in &module.crds {
            let row = Row { crd: crd.clone(), variant: None, source: Source::Module(downloaded.path.clone()) };
            save(row, read(crd, &downloaded.dir.join(file))?)?;
        }
    }
    Ok(())
}

fn read(crd: &str, path: &Path) -> Result<Value, Trouble> {
    let text = std::fs::read_to_string(path).map_err(|error| trouble::io("read the CRD", path, error))?;
    let remedy = "correct the row in tools/crds/crds.toml";
    // The largest of these files has a few hundred thousand nodes; they come checksummed, so no budget is needed.
    let options = serde_saphyr::options! { budget: None, legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
        .map_err(|error| Trouble::new(format!("{} is not YAML", path.display()), remedy).because(error.to_string()))?;
    let found = documents.into_iter().find(|document| document["metadata"]["name"] == crd);
    found.ok_or_else(|| Trouble::new(format!("{} does not hold the CRD {crd}", path.display()), remedy))
}

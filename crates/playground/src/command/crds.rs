//! `crds`: prints the table of third-party CRDs.

use super::EarlyExit;
use playground::crds::{Row, Source, Table};
use playground::text_table::{self, Align};
use playground::tools::{Tools, required_version};
use std::io::Write;

pub(crate) fn run() -> Result<(), EarlyExit> {
    let tools = Tools::load()?;
    let table = Table::parse(&tools.crds_table)?;
    let describe = |row: Row| {
        let source = match &row.source {
            Source::Module(path) => format!("{path} {}", required_version(&tools.crds_mod, path).unwrap_or("?")),
            Source::Schema => format!("{} {} (OpenAPI of a real cluster)", table.sdist.package, table.sdist.version),
            Source::Stub => "permissive stub: no package contains it".to_owned(),
        };
        let variant = row.variant.map(|variant| format!(" ({variant})")).unwrap_or_default();
        [row.crd + &variant, source]
    };
    let rows: Vec<[String; 2]> = table.rows().into_iter().map(describe).collect();
    let mut out = std::io::stdout().lock();
    for line in text_table::lines([Align::Left, Align::Left], &rows) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

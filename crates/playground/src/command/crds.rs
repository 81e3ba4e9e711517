//! `crds`: prints the table of third-party CRDs.

use super::EarlyExit;
use playground::crds::{Source, Table};
use playground::tools::{Tools, required_version};
use std::io::Write;

pub(crate) fn run() -> Result<(), EarlyExit> {
    let tools = Tools::load()?;
    let table = Table::parse(&tools.crds_table)?;
    let mut out = std::io::stdout().lock();
    for row in table.rows() {
        let source = match &row.source {
            Source::Module(path) => format!("{path} {}", required_version(&tools.crds_mod, path).unwrap_or("?")),
            Source::Schema => format!("{} {} (OpenAPI of a real cluster)", table.sdist.package, table.sdist.version),
            Source::Stub => "permissive stub: no package contains it".to_owned(),
        };
        let variant = row.variant.map(|variant| format!(" ({variant})")).unwrap_or_default();
        writeln!(out, "{:<72} {source}", row.crd + &variant)?;
    }
    Ok(())
}

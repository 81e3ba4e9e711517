//! The generated files, which are never edited by hand.

mod crd_base;
mod crd_table;
mod features;
mod fleet_samples;
mod golden;
mod layer_table;
mod metrics;
mod packages;
mod profiles;
mod pure_clippy;
mod reference;
pub(crate) mod role;

use crate::layers;
use crate::workspace::Workspace;

/// A generated file.
pub(crate) struct File {
    /// The path from the root.
    pub(crate) path: String,
    /// The expected content.
    pub(crate) text: String,
}

/// A Markdown table.
fn markdown_table<const COLUMNS: usize>(header: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let mut text = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(COLUMNS));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// Every generated file with its expected content.
pub(crate) fn files(workspace: &Workspace) -> anyhow::Result<Vec<File>> {
    let mut files = vec![crd_table::file(workspace)?, layer_table::file(workspace)?, metrics::file(workspace)?];
    files.extend(crd_base::files()?);
    files.extend(fleet_samples::files());
    files.extend(role::files(workspace)?);
    files.extend(features::files(workspace)?);
    files.extend(reference::files(workspace)?);
    files.extend(packages::files(workspace)?);
    files.extend(golden::files(workspace)?);
    files.extend(profiles::files(workspace)?);
    let pure = workspace.own().filter(|package| layers::find(&package.name).is_some_and(layers::Layer::is_pure));
    files.extend(
        pure.map(|package| File { path: format!("crates/{}/clippy.toml", package.name), text: pure_clippy::text() }),
    );
    Ok(files)
}

/// The clippy rules of a pure crate, for the test that exercises each of them.
#[cfg(test)]
pub(crate) use pure_clippy::{METHODS, TYPES, text as pure_clippy_text};

//! The files that are derived from others; nobody edits them.

mod crd_table;
mod layer_table;
mod pure_clippy;
pub(crate) mod role;

use crate::layers;
use crate::workspace::Workspace;

/// A derived file.
pub(crate) struct File {
    /// From the root.
    pub(crate) path: String,
    /// What it has to contain.
    pub(crate) text: String,
}

/// Every derived file with what it has to contain now.
pub(crate) fn files(workspace: &Workspace) -> anyhow::Result<Vec<File>> {
    let mut files = vec![crd_table::file(workspace)?, layer_table::file(workspace)?];
    files.extend(role::files(workspace)?);
    let pure = workspace.own().filter(|package| layers::find(&package.name).is_some_and(|layer| layer.role.is_pure()));
    files.extend(
        pure.map(|package| File { path: format!("crates/{}/clippy.toml", package.name), text: pure_clippy::text() }),
    );
    Ok(files)
}

/// The rules of a pure crate, for the test that shows each of them at work.
#[cfg(test)]
pub(crate) use pure_clippy::{METHODS, TYPES, text as pure_clippy_text};

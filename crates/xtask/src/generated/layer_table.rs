//! The table of crates in ARCHITECTURE.md.

use super::{File, markdown_table};
use crate::layers::{LAYERS, Layer};
use crate::workspace::Workspace;
use anyhow::Context;

const PATH: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- generated: crates -->\n";
const END: &str = "<!-- end of generated -->";

pub(super) fn file(workspace: &Workspace) -> anyhow::Result<File> {
    let names: Vec<&str> = workspace.own().map(|package| package.name.as_str()).collect();
    let row = |layer: &Layer| {
        let existing: Vec<&str> = layer.may_use.iter().copied().filter(|name| names.contains(name)).collect();
        let may_use = if existing.is_empty() { "-".to_owned() } else { existing.join(", ") };
        [format!("`{}`", layer.name), layer.role.label().to_owned(), may_use, layer.what.to_owned()]
    };
    let existing = LAYERS.iter().filter(|layer| names.contains(&layer.name));
    let rows: Vec<[String; 4]> = existing.map(row).collect();
    let table = markdown_table(["crate", "role", "may use", "what it is"], &rows);
    let old = workspace.read(PATH)?;
    let (before, rest) = old.split_once(BEGIN).with_context(|| format!("{PATH} has no line {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PATH} has no line {END:?}"))?;
    Ok(File { path: PATH.to_owned(), text: format!("{before}{BEGIN}{table}{END}{after}") })
}

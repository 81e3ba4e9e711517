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
        let may_use = if layer.may_use.is_empty() { "-".to_owned() } else { layer.may_use.join(", ") };
        let role = match names.contains(&layer.name) {
            true => layer.role.label().to_owned(),
            false => format!("{}, planned", layer.role.label()),
        };
        [format!("`{}`", layer.name), role, may_use, layer.what.to_owned()]
    };
    let rows: Vec<[String; 4]> = LAYERS.iter().map(row).collect();
    let table = markdown_table(["crate", "role", "may use", "what it is"], &rows);
    let old = workspace.read(PATH)?;
    let (before, rest) = old.split_once(BEGIN).with_context(|| format!("{PATH} has no line {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PATH} has no line {END:?}"))?;
    Ok(File { path: PATH.to_owned(), text: format!("{before}{BEGIN}{table}{END}{after}") })
}

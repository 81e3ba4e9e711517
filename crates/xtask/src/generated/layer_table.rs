//! The table of crates in ARCHITECTURE.md.

use super::File;
use crate::layers::LAYERS;
use crate::workspace::Workspace;
use anyhow::Context;

const PATH: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- generated: crates -->\n";
const END: &str = "<!-- end of generated -->";

pub(super) fn file(workspace: &Workspace) -> anyhow::Result<File> {
    let names: Vec<&str> = workspace.own().map(|package| package.name.as_str()).collect();
    let mut table = String::from("| crate | role | may use | what it is |\n|---|---|---|---|\n");
    for layer in LAYERS.iter().filter(|layer| names.contains(&layer.name)) {
        let existing: Vec<&str> = layer.may_use.iter().copied().filter(|name| names.contains(name)).collect();
        let may_use = if existing.is_empty() { "-".to_owned() } else { existing.join(", ") };
        table.push_str(&format!("| `{}` | {} | {may_use} | {} |\n", layer.name, layer.role.label(), layer.what));
    }
    let old = workspace.read(PATH)?;
    let (before, rest) = old.split_once(BEGIN).with_context(|| format!("{PATH} has no line {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PATH} has no line {END:?}"))?;
    Ok(File { path: PATH.to_owned(), text: format!("{before}{BEGIN}{table}{END}{after}") })
}

//! What kind of object an asset makes, told without facts.

use crate::asset::Asset;
use crate::catalog::Catalog;
use change::Kind;

/// The kind of object an asset makes, from the first top-level `apiVersion:` and `kind:` of its file.
///
/// `None` where the file does not say it in plain words.
pub fn requirement(catalog: &Catalog, asset: &Asset) -> Option<Kind> {
    let text = std::str::from_utf8(catalog.files.get(&asset.path)?).ok()?;
    let api_version = top_level(text, "apiVersion:")?;
    let kind = top_level(text, "kind:")?;
    Some(Kind::new(api_version, kind))
}

fn top_level<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let value = value.split(" #").next().unwrap_or(value).trim();
    let value = value.trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains("{{")).then_some(value)
}

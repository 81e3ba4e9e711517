//! What kind of object an asset makes, told without facts.

use crate::asset::Asset;
use crate::catalog::Catalog;

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// The kind of object an asset makes, from the first top-level `apiVersion:` and `kind:` of its file.
///
/// `None` where the file does not say it in plain words.
pub fn requirement(catalog: &Catalog, asset: &Asset) -> Option<Kind> {
    let text = std::str::from_utf8(catalog.files.get(&asset.path)?).ok()?;
    let api_version = top_level(text, "apiVersion:")?;
    let kind = top_level(text, "kind:")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
}

fn top_level<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let value = value.split(" #").next().unwrap_or(value).trim();
    let value = value.trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains("{{")).then_some(value)
}

//! Reads a YAML tree strictly: what is not understood is a fault with its line, and reading goes on.

use crate::pack::fault::Fault;
use crate::yaml::node::{Content, YamlNode};
use std::collections::BTreeMap;

/// Collects what is wrong with one file.
#[derive(Debug)]
pub struct StrictReader<'a> {
    /// The file's path.
    pub file: &'a str,
    /// What was wrong so far.
    pub faults: Vec<Fault>,
}

/// The entries of a map that were looked for.
#[derive(Debug)]
pub struct Entries<'n> {
    /// Where the map begins.
    pub line: usize,
    /// What the map is, for messages: `asset`.
    what: &'static str,
    by_key: BTreeMap<&'n str, &'n YamlNode>,
}

impl<'a> StrictReader<'a> {
    /// Begins.
    pub fn new(file: &'a str) -> StrictReader<'a> {
        StrictReader { file, faults: Vec::new() }
    }

    /// Notes a fault.
    pub fn fault(&mut self, line: usize, message: impl Into<String>) {
        self.faults.push(Fault { file: self.file.to_owned(), line: Some(line), message: message.into() });
    }

    /// The entries of a map that has no other keys than these, but for those that start with `x-`.
    pub fn entries<'n>(&mut self, node: &'n YamlNode, what: &'static str, known: &[&str]) -> Option<Entries<'n>> {
        let Content::Map(map) = &node.content else {
            self.wrong_kind(node, what, "a map");
            return None;
        };
        let mut by_key = BTreeMap::new();
        for (key, line, value) in map {
            if known.contains(&key.as_str()) {
                by_key.insert(key.as_str(), value);
            } else if !key.starts_with("x-") {
                let hint = nearest(key, known).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
                self.fault(*line, format!("{what} has an unknown key `{key}`{hint}"));
            }
        }
        Some(Entries { line: node.line, what, by_key })
    }

    fn wrong_kind(&mut self, node: &YamlNode, what: &str, wanted: &str) {
        self.fault(node.line, format!("{what} must be {wanted}, not {}", node.kind()));
    }

    /// A text that must be there.
    pub fn required(&mut self, entries: &Entries<'_>, key: &str) -> Option<String> {
        match entries.by_key.get(key) {
            None => {
                self.fault(entries.line, format!("{} needs `{key}`", entries.what));
                None
            }
            Some(node) => match self.text(node, key) {
                Some(text) if text.is_empty() => {
                    self.fault(node.line, format!("`{key}` must not be empty"));
                    None
                }
                other => other,
            },
        }
    }

    /// A text that may be missing.
    pub fn optional(&mut self, entries: &Entries<'_>, key: &str) -> Option<String> {
        entries.by_key.get(key).filter(|node| node.content != Content::Null).and_then(|node| self.text(node, key))
    }

    /// A number that is 0 where it is missing.
    pub fn number(&mut self, entries: &Entries<'_>, key: &str) -> i64 {
        match entries.by_key.get(key) {
            None => 0,
            Some(YamlNode { content: Content::Int(number), .. }) => *number,
            Some(node) => {
                self.wrong_kind(node, &format!("`{key}`"), "a whole number");
                0
            }
        }
    }

    /// One of some words.
    pub fn choice<T: Copy>(&mut self, entries: &Entries<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let node = entries.by_key.get(key)?;
        let text = self.text(node, key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.fault(node.line, format!("`{key}` is `{text}` and must be {}", known.join(" or ")));
        }
        found
    }

    /// A list's items; nothing is an empty list.
    pub fn items<'n>(&mut self, entries: &Entries<'n>, key: &str) -> &'n [YamlNode] {
        match entries.by_key.get(key) {
            None | Some(YamlNode { content: Content::Null, .. }) => &[],
            Some(YamlNode { content: Content::List(items), .. }) => items,
            Some(node) => {
                self.wrong_kind(node, &format!("`{key}`"), "a list");
                &[]
            }
        }
    }

    /// A list of texts.
    pub fn texts(&mut self, entries: &Entries<'_>, key: &str) -> Vec<String> {
        self.items(entries, key).iter().filter_map(|item| self.text(item, key)).collect()
    }

    /// A map of texts.
    pub fn text_map(&mut self, entries: &Entries<'_>, key: &str) -> BTreeMap<String, String> {
        match entries.by_key.get(key) {
            None | Some(YamlNode { content: Content::Null, .. }) => BTreeMap::new(),
            Some(YamlNode { content: Content::Map(map), .. }) => map
                .iter()
                .filter_map(|(name, _, value)| Some((name.clone(), self.text(value, &format!("{key}.{name}"))?)))
                .collect(),
            Some(node) => {
                self.wrong_kind(node, &format!("`{key}`"), "a map");
                BTreeMap::new()
            }
        }
    }

    fn text(&mut self, node: &YamlNode, key: &str) -> Option<String> {
        if let Content::Text(text) = &node.content {
            return Some(text.clone());
        }
        let hint = match node.content {
            Content::Bool(_) | Content::Int(_) | Content::Float(_) => " (put it in quotes)",
            _ => "",
        };
        self.fault(node.line, format!("`{key}` must be text, not {}{hint}", node.kind()));
        None
    }
}

impl<'n> Entries<'n> {
    /// One entry as it is.
    pub fn get(&self, key: &str) -> Option<&'n YamlNode> {
        self.by_key.get(key).copied()
    }

    /// Where a key's value stands, or else the map.
    pub fn line_of(&self, key: &str) -> usize {
        self.get(key).map_or(self.line, |node| node.line)
    }
}

/// The known word that a mistyped one most likely stands for.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let most = if word.len() < 4 { 1 } else { 2 };
    let near = known.iter().map(|candidate| (distance(word, candidate), *candidate));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, candidate)| candidate)
}

/// How many characters must be added, taken away or changed.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().replace('-', "_").chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (place, character) in left.to_lowercase().replace('-', "_").chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = place + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(character != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_finds_the_key_that_was_meant() {
        let known = ["install", "reconcile_order", "conditions", "name"];
        assert_eq!(nearest("instal", &known), Some("install"));
        assert_eq!(nearest("reconcile-order", &known), Some("reconcile_order"));
        assert_eq!(nearest("Name", &known), Some("name"));
        assert_eq!(nearest("colour", &known), None);
    }
}

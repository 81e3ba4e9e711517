//! Reads a YAML tree strictly: everything unknown is recorded as a fault with its line, and reading continues.

use crate::pack::fault::Fault;
use crate::yaml::node::{Content, YamlNode};
use std::collections::BTreeMap;

/// Reads one file and collects its faults.
#[derive(Debug)]
pub struct StrictReader<'a> {
    /// The path of the file.
    pub file: &'a str,
    /// The faults so far.
    pub faults: Vec<Fault>,
}

/// The known entries of a map.
#[derive(Debug)]
pub struct Entries<'n> {
    /// The line where the map begins.
    pub line: usize,
    /// What the map describes, for messages: `asset`.
    what: &'static str,
    by_key: BTreeMap<&'n str, &'n YamlNode>,
}

impl<'a> StrictReader<'a> {
    /// A reader without faults.
    pub fn new(file: &'a str) -> StrictReader<'a> {
        StrictReader { file, faults: Vec::new() }
    }

    /// Records a fault.
    pub fn fault(&mut self, line: usize, message: impl Into<String>) {
        self.faults.push(Fault { file: self.file.to_owned(), line: Some(line), message: message.into() });
    }

    /// The entries of a map; keys other than the known ones are faults, unless they begin with `x-`.
    pub fn entries<'n>(&mut self, node: &'n YamlNode, what: &'static str, known: &[&str]) -> Option<Entries<'n>> {
        let Content::Map(map) = &node.content else {
            self.wrong_type(node, what, "a map");
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

    fn wrong_type(&mut self, node: &YamlNode, what: &str, wanted: &str) {
        self.fault(node.line, format!("{what} must be {wanted}, not {}", node.kind()));
    }

    /// A required text.
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

    /// An optional text.
    pub fn optional(&mut self, entries: &Entries<'_>, key: &str) -> Option<String> {
        entries.by_key.get(key).filter(|node| node.content != Content::Null).and_then(|node| self.text(node, key))
    }

    /// An optional number; 0 if it is missing.
    pub fn number(&mut self, entries: &Entries<'_>, key: &str) -> i64 {
        match entries.by_key.get(key) {
            None => 0,
            Some(YamlNode { content: Content::Int(number), .. }) => *number,
            Some(node) => {
                self.wrong_type(node, &format!("`{key}`"), "a whole number");
                0
            }
        }
    }

    /// An optional boolean; false if it is missing.
    pub fn boolean(&mut self, entries: &Entries<'_>, key: &str) -> bool {
        match entries.by_key.get(key) {
            None => false,
            Some(YamlNode { content: Content::Bool(value), .. }) => *value,
            Some(node) => {
                self.wrong_type(node, &format!("`{key}`"), "true or false");
                false
            }
        }
    }

    /// One of several words.
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

    /// The items of an optional list.
    pub fn items<'n>(&mut self, entries: &Entries<'n>, key: &str) -> &'n [YamlNode] {
        match entries.by_key.get(key) {
            None | Some(YamlNode { content: Content::Null, .. }) => &[],
            Some(YamlNode { content: Content::List(items), .. }) => items,
            Some(node) => {
                self.wrong_type(node, &format!("`{key}`"), "a list");
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
                self.wrong_type(node, &format!("`{key}`"), "a map");
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
    /// One entry, uninterpreted.
    pub fn get(&self, key: &str) -> Option<&'n YamlNode> {
        self.by_key.get(key).copied()
    }

    /// The line of a key's value, or that of the map if the key is missing.
    pub fn line_of(&self, key: &str) -> usize {
        self.get(key).map_or(self.line, |node| node.line)
    }
}

/// The known word that is most similar to a mistyped one.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let max_distance = if word.len() < 4 { 1 } else { 2 };
    let near = known.iter().map(|candidate| (distance(word, candidate), *candidate));
    near.filter(|(distance, _)| *distance <= max_distance).min().map(|(_, candidate)| candidate)
}

/// The number of characters to add, remove or change, ignoring case and `-` versus `_`.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().replace('-', "_").chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, character) in left.to_lowercase().replace('-', "_").chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
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
    fn a_typo_finds_the_intended_key() {
        let known = ["install", "reconcile_order", "conditions", "name"];
        assert_eq!(nearest("instal", &known), Some("install"));
        assert_eq!(nearest("reconcile-order", &known), Some("reconcile_order"));
        assert_eq!(nearest("Name", &known), Some("name"));
        assert_eq!((nearest("colour", &known), nearest("xyzinstall", &known)), (None, None));
        assert_eq!((nearest("instxxl", &known), nearest("insxxxl", &known)), (Some("install"), None), "two characters");
        let short = ["kind", "abc"];
        assert_eq!((nearest("abd", &short), nearest("axy", &short)), (Some("abc"), None), "one of a short word");
        assert_eq!((nearest("kimm", &short), nearest("", &["a"])), (Some("kind"), Some("a")));
    }
}

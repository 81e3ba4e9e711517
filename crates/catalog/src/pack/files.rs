//! The files of a pack, in memory.

use std::collections::BTreeMap;

/// The files of a pack by their path relative to its root, such as `active/metadata.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    by_path: BTreeMap<String, Vec<u8>>,
}

impl Files {
    /// Takes files that the caller has read.
    pub fn new(by_path: BTreeMap<String, Vec<u8>>) -> Files {
        Files { by_path }
    }

    /// The content of one file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.by_path.get(path).map(Vec::as_slice)
    }

    /// All files, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.by_path.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }
}

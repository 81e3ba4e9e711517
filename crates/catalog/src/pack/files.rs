//! The files of a pack, in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The files of a pack by their path relative to its root, such as `active/metadata.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    by_path: BTreeMap<String, Cow<'static, [u8]>>,
}

impl Files {
    /// Takes files that the caller has read.
    pub fn new(by_path: BTreeMap<String, Vec<u8>>) -> Files {
        Files { by_path: by_path.into_iter().map(|(path, content)| (path, content.into())).collect() }
    }

    /// Takes files that are part of the program.
    pub fn embedded(files: &[(&str, &'static [u8])]) -> Files {
        Files { by_path: files.iter().map(|(path, content)| ((*path).to_owned(), (*content).into())).collect() }
    }

    /// The content of one file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.by_path.get(path).map(AsRef::as_ref)
    }

    /// All files, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.by_path.iter().map(|(path, content)| (path.as_str(), content.as_ref()))
    }
}

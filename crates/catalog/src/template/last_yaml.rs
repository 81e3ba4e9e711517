//! The YAML that was read last: many assets with one template often read the same file, one after another.

use crate::yaml;
use crate::yaml::read::YamlError;
use serde_json::Value;
use std::cell::RefCell;

/// The last text and its documents.
#[derive(Debug, Default)]
pub struct LastYaml(RefCell<Option<(String, Vec<Value>)>>);

impl LastYaml {
    /// Shows the documents of a text to a function.
    pub fn read<T>(&self, text: &str, show: impl FnOnce(&[Value]) -> T) -> Result<T, YamlError> {
        let mut last = self.0.borrow_mut();
        let (_, documents) = match last.take().filter(|(known, _)| known == text) {
            Some(known) => last.insert(known),
            None => last.insert((text.to_owned(), yaml::read::documents(text)?)),
        };
        Ok(show(documents))
    }
}

#[cfg(test)]
mod tests {
    use super::LastYaml;
    use serde_json::{Value, json};

    #[test]
    fn a_text_is_never_taken_for_another() {
        let yaml = LastYaml::default();
        let read = |text: &str| yaml.read(text, <[Value]>::to_vec).ok();
        let one = Some(vec![json!({"a": 1})]);
        assert_eq!((read("a: 1"), read("a: 1")), (one.clone(), one.clone()));
        assert_eq!((read("a: ["), read("a: 1")), (None, one));
        assert_eq!(read("a: 2\n---\nb: 3"), Some(vec![json!({"a": 2}), json!({"b": 3})]));
    }
}

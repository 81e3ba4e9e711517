//! JSON pointers (RFC 6901) to fields of an object.

use std::fmt;

/// A parsed pointer: its steps, unescaped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Reads a pointer strictly: it is empty or begins with a slash, and `~` is followed by `0` or `1`.
    pub fn parse(text: &str) -> Result<Pointer, String> {
        if text.is_empty() {
            return Ok(Pointer(Vec::new()));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("{text:?} does not begin with a slash; write it as /spec/..."));
        };
        rest.split('/').map(unescape).collect::<Result<_, _>>().map(Pointer)
    }

    /// Its steps.
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// Whether it points at `place` or below it.
    pub fn is_within(&self, place: &[&str]) -> bool {
        self.0.len() >= place.len() && self.0.iter().zip(place).all(|(step, wanted)| step == wanted)
    }

    /// Whether what it points at contains `place`, or is it.
    pub fn contains(&self, place: &[&str]) -> bool {
        self.0.len() <= place.len() && self.0.iter().zip(place).all(|(step, wanted)| step == wanted)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            write!(f, "/{}", step.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

fn unescape(step: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut letters = step.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '~') {
            (_, false) => plain.push(letter),
            _ => match letters.next() {
                Some('0') => plain.push('~'),
                Some('1') => plain.push('/'),
                _ => return Err(format!("{step:?} has a ~ that is neither ~0 nor ~1")),
            },
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::Pointer;

    #[test]
    fn a_pointer_is_read_strictly_and_written_back() {
        for text in ["", "/", "/spec/a~1b/~0", "/metadata/labels/platform.kubevirt.io~1x"] {
            assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
        }
        for text in ["spec", "spec/a", "/a~", "/a~2"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn within_and_contains_go_by_whole_steps() {
        let labels = Pointer::parse("/metadata/labels").unwrap();
        assert!(labels.is_within(&["metadata"]) && labels.is_within(&["metadata", "labels"]));
        assert!(!labels.is_within(&["metadata", "label"]) && !labels.is_within(&["metadata", "labels", "a"]));
        assert!(labels.contains(&["metadata", "labels", "a"]) && !labels.contains(&["metadata"]));
        assert!(Pointer::parse("").unwrap().contains(&["kind"]));
    }
}

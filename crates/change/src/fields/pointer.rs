//! JSON pointers (RFC 6901) to fields of an object.

use crate::fields::redact;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use std::fmt;

/// The most steps of a pointer; a patched object may not be deeper either.
const MAX_STEPS: usize = 32;

/// A parsed pointer as unescaped steps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Parses a pointer strictly: it is empty or begins with a slash, and `~` is followed by `0` or `1`.
    pub fn parse(text: &str) -> Result<Pointer, String> {
        Pointer::parse_with(text, OverrideGuards::ALL)
    }

    pub(crate) fn parse_with(text: &str, guards: OverrideGuards) -> Result<Pointer, String> {
        if text.is_empty() {
            return Ok(Pointer(Vec::new()));
        }
        let rest = match text.strip_prefix('/') {
            Some(rest) => rest,
            None if guards.enabled(OverrideGuard::LeadingSlash) => {
                let shown = redact::text(text);
                return Err(format!("{shown:?} does not begin with a slash; write it as /spec/..."));
            }
            None => text,
        };
        // Counted before the text is split, so that a hostile pointer costs no memory.
        let steps = rest.bytes().filter(|byte| *byte == b'/').count() + 1;
        if steps > MAX_STEPS && guards.enabled(OverrideGuard::Depth) {
            return Err(format!("it has {steps} steps, at most {MAX_STEPS} are allowed"));
        }
        rest.split('/').map(|step| unescape(step, guards)).collect::<Result<_, _>>().map(Pointer)
    }

    pub(crate) fn from_steps(steps: Vec<String>) -> Pointer {
        Pointer(steps)
    }

    /// The pointer with these steps.
    pub fn of<const N: usize>(steps: [&str; N]) -> Pointer {
        Pointer(steps.map(str::to_owned).to_vec())
    }

    /// The unescaped steps.
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// Whether it points at the same field as another pointer, or below it.
    pub(crate) fn starts_with(&self, other: &Pointer) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            write!(f, "/{}", escape(step))?;
        }
        Ok(())
    }
}

/// Escapes one step of a pointer: `~` becomes `~0` and `/` becomes `~1`.
pub fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

fn unescape(step: &str, guards: OverrideGuards) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = step.chars();
    while let Some(character) = characters.next() {
        match (character, character == '~') {
            (_, false) => plain.push(character),
            _ => match characters.next() {
                Some('0') => plain.push('~'),
                Some('1') => plain.push('/'),
                _ if guards.enabled(OverrideGuard::Escapes) => {
                    return Err(format!("{step:?} has a ~ that is neither ~0 nor ~1"));
                }
                other => plain.extend(std::iter::once('~').chain(other)),
            },
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::Pointer;

    #[test]
    fn a_pointer_is_parsed_strictly_and_printed_unchanged() {
        for text in ["", "/", "/spec/a~1b/~0", "/metadata/labels/platform.kubevirt.io~1x"] {
            assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
        }
        for text in ["spec", "spec/a", "/a~", "/a~2"] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pointer_has_at_most_32_steps() {
        assert_eq!(Pointer::parse(&"/a".repeat(32)).map(|pointer| pointer.steps().len()), Ok(32));
        assert_eq!(Pointer::parse(&"/a".repeat(33)), Err("it has 33 steps, at most 32 are allowed".into()));
    }
}

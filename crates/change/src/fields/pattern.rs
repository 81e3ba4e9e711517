//! Patterns: `*` and `?` in a name, `*` and `**` in a path.

use crate::fields::pointer::Pointer;

/// Whether a text matches a pattern with `*` (any characters) and `?` (one character). The time is at most proportional to the product
/// of both lengths, also for hostile patterns.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern_left, mut text_left) = (pattern.chars(), text.chars());
    // Where to resume when the part after the last star does not match: one character further.
    let mut star = None;
    loop {
        let before = text_left.clone();
        let character = pattern_left.next();
        if character == Some('*') {
            star = Some((pattern_left.clone(), before));
            continue;
        }
        match (character, text_left.next()) {
            (None, None) => return true,
            (Some(character), Some(seen)) if character == '?' || character == seen => {}
            (_, seen) => match &mut star {
                Some((after_star, taken)) if seen.is_some() => {
                    taken.next();
                    (pattern_left, text_left) = (after_star.clone(), taken.clone());
                }
                _ => return false,
            },
        }
    }
}

/// A path pattern: every step is a pattern of its own, and `**` matches any number of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern(Vec<StepPattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum StepPattern {
    Deep,
    Exactly(String),
    Like(String),
}

impl PathPattern {
    /// Parses a pattern; text that is not a pointer matches nothing.
    pub(crate) fn new(text: &str) -> PathPattern {
        let steps = Pointer::parse(text).map(|pointer| pointer.steps().to_vec()).unwrap_or_default();
        let step = |step: String| match step.as_str() {
            "**" => StepPattern::Deep,
            plain if !plain.contains(['*', '?']) => StepPattern::Exactly(step),
            _ => StepPattern::Like(step),
        };
        PathPattern(steps.into_iter().map(step).collect())
    }

    /// The progress before the first step.
    pub(crate) fn start(&self) -> Progress {
        self.closed(vec![0])
    }

    /// The progress after one more step.
    pub(crate) fn advance(&self, progress: &Progress, name: &str) -> Progress {
        let next = progress.0.iter().filter_map(|at| match self.0.get(*at)? {
            StepPattern::Deep => Some(*at),
            StepPattern::Exactly(wanted) => (wanted == name).then_some(at + 1),
            StepPattern::Like(wanted) => fits(wanted, name).then_some(at + 1),
        });
        self.closed(next.collect())
    }

    /// Whether the steps so far match the whole pattern.
    pub(crate) fn accepts(&self, progress: &Progress) -> bool {
        !self.0.is_empty() && progress.0.contains(&self.0.len())
    }

    /// Adds the positions behind `**`, which also matches no step at all.
    fn closed(&self, mut positions: Vec<usize>) -> Progress {
        let mut index = 0;
        while let Some(at) = positions.get(index).copied() {
            if self.0.get(at) == Some(&StepPattern::Deep) && !positions.contains(&(at + 1)) {
                positions.push(at + 1);
            }
            index += 1;
        }
        positions.sort_unstable();
        positions.dedup();
        Progress(positions)
    }
}

/// How far a pattern has matched along a path: all positions that it can be at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress(Vec<usize>);

impl Progress {
    /// Whether no longer path can match.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{PathPattern, fits};
    use crate::fields::pointer::Pointer;

    fn path_matches(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::new(pattern);
        let pointer = Pointer::parse(path).unwrap();
        let progress = pointer.steps().iter().fold(pattern.start(), |progress, step| pattern.advance(&progress, step));
        pattern.accepts(&progress)
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("?b*", "abc"),
            ("virt-*", "virt-x"),
            ("*a*a*", "aa"),
            ("**", "a"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "b"), ("", "a"), ("a*c", "ab"), ("?", ""), ("virt-*", "x-virt-"), ("*b", "a")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
        assert!(!fits(&"*a".repeat(200), &"a".repeat(150)), "a hostile pattern ends");
    }

    #[test]
    fn a_path_is_matched_step_by_step() {
        for (pattern, path) in [
            ("/spec/**", "/spec"),
            ("/spec/**", "/spec/a/b"),
            ("/spec/*/b", "/spec/0/b"),
            ("/spec/**/env/*/valueFrom/**", "/spec/env/x/env/0/valueFrom/y"),
            ("/metadata/labels/a.io~1*", "/metadata/labels/a.io~1b"),
        ] {
            assert!(path_matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/spec/**", "/specs"),
            ("/spec/**", ""),
            ("/spec/*", "/spec"),
            ("/spec/*", "/spec/a/b"),
            ("/spec/**/env/*/valueFrom", "/spec/env/valueFrom"),
            ("no pointer", ""),
        ] {
            assert!(!path_matches(pattern, path), "{pattern} {path}");
        }
    }
}

//! Patterns: `*` and `?` in a name, `*` and `**` in a path.

use crate::fields::pointer::Pointer;

/// Whether a text fits a pattern with `*` (any characters) and `?` (one character); takes time proportional to both at most, whatever the
/// pattern.
pub fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern_left, mut text_left) = (pattern.chars(), text.chars());
    // Where to go on when what came after the last star does not fit: one character further.
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

/// A pattern of paths: every step is a pattern of its own, `**` stands for any number of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern(Vec<StepPattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum StepPattern {
    Deep,
    Exactly(String),
    Like(String),
}

impl PathPattern {
    /// Reads a pattern; one that is no pointer fits nothing.
    pub(crate) fn new(text: &str) -> PathPattern {
        let steps = Pointer::parse(text).map(|pointer| pointer.steps().to_vec()).unwrap_or_default();
        let step = |step: String| match step.as_str() {
            "**" => StepPattern::Deep,
            plain if !plain.contains(['*', '?']) => StepPattern::Exactly(step),
            _ => StepPattern::Like(step),
        };
        PathPattern(steps.into_iter().map(step).collect())
    }

    /// How far it has come before any step was taken.
    pub(crate) fn start(&self) -> Progress {
        self.closed(vec![0])
    }

    /// How far it has come one step further.
    pub(crate) fn advance(&self, progress: &Progress, name: &str) -> Progress {
        let next = progress.0.iter().filter_map(|at| match self.0.get(*at)? {
            StepPattern::Deep => Some(*at),
            StepPattern::Exactly(wanted) => (wanted == name).then_some(at + 1),
            StepPattern::Like(wanted) => fits(wanted, name).then_some(at + 1),
        });
        self.closed(next.collect())
    }

    /// Whether the steps taken so far are a path it fits.
    pub(crate) fn accepts(&self, progress: &Progress) -> bool {
        !self.0.is_empty() && progress.0.contains(&self.0.len())
    }

    /// `**` also stands for no step at all.
    fn closed(&self, mut places: Vec<usize>) -> Progress {
        let mut index = 0;
        while let Some(at) = places.get(index).copied() {
            if self.0.get(at) == Some(&StepPattern::Deep) && !places.contains(&(at + 1)) {
                places.push(at + 1);
            }
            index += 1;
        }
        places.sort_unstable();
        places.dedup();
        Progress(places)
    }
}

/// How far a pattern has come along a path: every place at which it can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress(Vec<usize>);

impl Progress {
    /// Whether nothing further down can fit any more.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{PathPattern, fits};
    use crate::fields::pointer::Pointer;

    fn leads(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::new(pattern);
        let pointer = Pointer::parse(path).unwrap();
        let progress = pointer.steps().iter().fold(pattern.start(), |progress, step| pattern.advance(&progress, step));
        pattern.accepts(&progress)
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
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
        assert!(!fits(&"*a".repeat(200), &"a".repeat(150)), "and a hostile one ends");
    }

    #[test]
    fn a_path_fits_step_by_step() {
        for (pattern, path) in [
            ("/spec/**", "/spec"),
            ("/spec/**", "/spec/a/b"),
            ("/spec/*/b", "/spec/0/b"),
            ("/spec/**/env/*/valueFrom/**", "/spec/env/x/env/0/valueFrom/y"),
            ("/metadata/labels/a.io~1*", "/metadata/labels/a.io~1b"),
        ] {
            assert!(leads(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/spec/**", "/specs"),
            ("/spec/**", ""),
            ("/spec/*", "/spec"),
            ("/spec/*", "/spec/a/b"),
            ("/spec/**/env/*/valueFrom", "/spec/env/valueFrom"),
            ("no pointer", ""),
        ] {
            assert!(!leads(pattern, path), "{pattern} {path}");
        }
    }
}

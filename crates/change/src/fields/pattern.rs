//! Patterns: `*` and `?` in a name; in a path also `**`, exceptions, names of list items and values.

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

/// A path pattern. Every step is a pattern of its own:
/// `**` matches any number of steps, `*!(a|b*)` any step but `a` and `b*`, and `[name=A|B*]` a key or a list item with such a name, in
/// any case. A last step such as `value=*x*` matches a text `value` that contains `x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern(Vec<StepPattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum StepPattern {
    Deep,
    Exactly(String),
    Like(String),
    Except(String, Vec<String>),
    Named(Vec<String>),
    Text(String),
}

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A key of a map, or an index in a pointer.
    Key(&'a str),
    /// An item of a list, and its `name`.
    Item(Option<&'a str>),
    /// The text at the end of the path.
    Text(&'a str),
}

impl StepPattern {
    /// Parses a step; one with a value is two steps.
    fn parse(step: String) -> Vec<StepPattern> {
        if step == "**" {
            return vec![StepPattern::Deep];
        }
        if let Some(name) = step.strip_prefix("[name=").and_then(|rest| rest.strip_suffix(']')) {
            return vec![StepPattern::Named(name.split('|').map(str::to_ascii_lowercase).collect())];
        }
        if let Some((step, text)) = step.split_once('=') {
            return [StepPattern::parse(step.to_owned()), vec![StepPattern::Text(text.to_owned())]].concat();
        }
        if let Some((step, except)) = step.strip_suffix(')').and_then(|step| step.split_once("!(")) {
            return vec![StepPattern::Except(step.to_owned(), except.split('|').map(str::to_owned).collect())];
        }
        vec![if step.contains(['*', '?']) { StepPattern::Like(step) } else { StepPattern::Exactly(step) }]
    }

    fn matches(&self, step: Step<'_>) -> bool {
        let (key, name) = match step {
            Step::Key(key) => (key, Some(key)),
            // No rule distinguishes the items of a list by their index.
            Step::Item(name) => ("0", name),
            Step::Text(text) => return matches!(self, StepPattern::Text(wanted) if fits(wanted, text)),
        };
        match self {
            StepPattern::Deep => true,
            StepPattern::Exactly(wanted) => wanted == key,
            StepPattern::Like(wanted) => fits(wanted, key),
            StepPattern::Except(wanted, except) => fits(wanted, key) && !except.iter().any(|except| fits(except, key)),
            StepPattern::Named(wanted) => {
                name.map(str::to_ascii_lowercase).is_some_and(|name| wanted.iter().any(|wanted| fits(wanted, &name)))
            }
            StepPattern::Text(_) => false,
        }
    }
}

impl PathPattern {
    /// Parses a pattern; text that is not a pointer matches nothing.
    pub(crate) fn new(text: &str) -> PathPattern {
        let steps = Pointer::parse(text).map(|pointer| pointer.steps().to_vec()).unwrap_or_default();
        PathPattern(steps.into_iter().flat_map(StepPattern::parse).collect())
    }

    /// The progress before the first step.
    pub(crate) fn start(&self) -> Progress {
        self.closed(vec![0])
    }

    /// The progress after one more step.
    pub(crate) fn advance(&self, progress: &Progress, step: Step<'_>) -> Progress {
        let next = progress.0.iter().filter_map(|at| match self.0.get(*at)? {
            StepPattern::Deep => (!matches!(step, Step::Text(_))).then_some(*at),
            pattern => pattern.matches(step).then_some(at + 1),
        });
        self.closed(next.collect())
    }

    /// Whether the next step may depend on the name of a list item.
    pub(crate) fn reads_name(&self, progress: &Progress) -> bool {
        progress.0.iter().any(|at| matches!(self.0.get(*at), Some(StepPattern::Named(_))))
    }

    /// Whether the next step may depend on the text at the end of the path.
    pub(crate) fn reads_text(&self, progress: &Progress) -> bool {
        progress.0.iter().any(|at| matches!(self.0.get(*at), Some(StepPattern::Text(_))))
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
    use super::{PathPattern, Step, fits};
    use crate::fields::pointer::Pointer;

    fn path_matches(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::new(pattern);
        let pointer = Pointer::parse(path).unwrap();
        let advance = |progress, step: &String| pattern.advance(&progress, Step::Key(step));
        pattern.accepts(&pointer.steps().iter().fold(pattern.start(), advance))
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

    #[test]
    fn a_step_may_have_exceptions() {
        let pattern = "/limits/*!(cpu|huge-*)";
        assert!(path_matches(pattern, "/limits/a.io~1gpu") && path_matches(pattern, "/limits/cpus"));
        assert!(!path_matches(pattern, "/limits/cpu") && !path_matches(pattern, "/limits/huge-2Mi"));
        assert!(!path_matches("/a/b*!(bc)", "/a/x"), "an exception does not widen a step");
    }

    #[test]
    fn names_of_items_and_texts_are_matched() {
        let matches = |pattern: &str, steps: &[Step<'_>]| {
            let pattern = PathPattern::new(pattern);
            pattern.accepts(&steps.iter().fold(pattern.start(), |progress, step| pattern.advance(&progress, *step)))
        };
        let (env, value) = (Step::Key("env"), Step::Key("value"));
        let named = |name| [env, Step::Item(name), value];
        assert!(matches("/env/[name=LD_*]/**", &named(Some("ld_preload"))), "in any case");
        assert!(matches("/env/[name=LD_*]/**", &[env, Step::Key("LD_PRELOAD")]), "a key of a map has a name, too");
        assert!(!matches("/env/[name=LD_*]/**", &named(Some("OLD_"))) && !matches("/env/[name=*]/**", &named(None)));
        let text = |text| [env, Step::Item(None), value, Step::Text(text)];
        assert!(matches("/**/value=*$(*", &text("a$(B)")) && !matches("/**/value=*$(*", &text("a")));
        assert!(!matches("/**", &text("a")), "a text is no step");
        assert!(!matches("/env/*/value=*", &named(None)), "and a step is no text");
    }
}

//! Patterns of names as in a shell, with the syntax of Go's `path.Match`, because the predecessor used it.

/// A parsed pattern: `*` is any characters, `?` is one, `[a-c]` is one of some, `[^a]` is any other, and `\` takes the next
/// character literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    steps: Vec<Step>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Any number of characters.
    Star,
    /// Any one character.
    Any,
    /// This character.
    One(char),
    /// One character that is in one of these ranges, or in none of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Step {
    /// Whether it fits one character.
    fn fits(&self, character: char) -> bool {
        match self {
            Step::Star => false,
            Step::Any => true,
            Step::One(wanted) => *wanted == character,
            Step::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

impl Glob {
    /// Parses a pattern; the error says what is malformed.
    pub fn parse(text: &str) -> Result<Glob, String> {
        let (mut steps, mut rest) = (Vec::new(), text.chars());
        while let Some(character) = rest.next() {
            steps.push(match character {
                '*' => Step::Star,
                '?' => Step::Any,
                '[' => class(&mut rest)?,
                '\\' => Step::One(rest.next().ok_or(r"a \ at its end escapes nothing")?),
                other => Step::One(other),
            });
        }
        Ok(Glob { text: text.to_owned(), steps })
    }

    /// A pattern that fits only this text.
    pub(crate) fn literal(text: &str) -> Glob {
        Glob { text: text.to_owned(), steps: text.chars().map(Step::One).collect() }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The characters that it wants literally.
    pub(crate) fn literals(&self) -> impl Iterator<Item = char> {
        self.steps.iter().filter_map(|step| if let Step::One(character) = step { Some(*character) } else { None })
    }

    /// Whether it fits a name. The time is at most proportional to the product of both lengths, also for hostile patterns.
    pub fn fits(&self, name: &str) -> bool {
        let (mut steps, mut left) = (self.steps.as_slice(), name.chars());
        // Where to resume when the part after the last star does not fit: one character further.
        let mut star: Option<(&[Step], std::str::Chars<'_>)> = None;
        loop {
            if let [Step::Star, after @ ..] = steps {
                (steps, star) = (after, Some((after, left.clone())));
                continue;
            }
            match (steps, left.next()) {
                ([], None) => return true,
                ([step, after @ ..], Some(character)) if step.fits(character) => steps = after,
                (_, seen) => match &mut star {
                    Some((after_star, taken)) if seen.is_some() => {
                        taken.next();
                        (steps, left) = (after_star, taken.clone());
                    }
                    _ => return false,
                },
            }
        }
    }

    /// A name that it fits, if there is one.
    #[cfg(test)]
    pub(crate) fn example(&self) -> Option<String> {
        let mut name = String::new();
        for step in self.steps.iter().filter(|step| **step != Step::Star) {
            let candidates = ('\0'..='\u{7f}').chain(self.literals());
            name.push(candidates.into_iter().find(|character| step.fits(*character))?);
        }
        Some(name)
    }
}

/// Parses a class behind its opening bracket.
fn class(rest: &mut std::str::Chars<'_>) -> Result<Step, String> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    while ranges.is_empty() || !rest.as_str().starts_with(']') {
        let low = member(rest)?;
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = member(rest)?;
        }
        if low > high {
            return Err(format!("the range {low}-{high} is backwards"));
        }
        ranges.push((low, high));
    }
    rest.next();
    Ok(Step::Class { negated, ranges })
}

/// One character of a class; `-` and `]` have to be escaped.
fn member(rest: &mut std::str::Chars<'_>) -> Result<char, String> {
    let character = match rest.next() {
        Some('\\') => rest.next(),
        Some(special @ (']' | '-')) => return Err(format!(r"write \{special} for a {special} between [ and ]")),
        other => other,
    };
    character.ok_or_else(|| "a [ has no ]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::Glob;
    use expect_test::{Expect, expect};

    #[test]
    fn patterns_fit_what_they_fit_in_go() {
        for (pattern, name) in [
            ("abc", "abc"),
            ("*", ""),
            ("*", "abc"),
            ("*c", "abc"),
            ("a*", "abc"),
            ("a*b*c*d*e*", "axbxcxdxexxx"),
            ("a*b?c*x", "abxbbxdbxebxczzx"),
            ("ab[c]", "abc"),
            ("ab[b-d]", "abc"),
            ("ab[^e-g]", "abc"),
            ("ab[!c]", "abc"),
            ("ab[!c]", "ab!"),
            ("a\\*b", "a*b"),
            ("a???b", "aäöüb"),
            ("a[^a]b", "aäb"),
            ("a[^a][^a]b", "aäöb"),
            ("[a-ζ]*", "α"),
            ("[\\]a]", "]"),
            ("[\\-]", "-"),
            ("[x\\-]", "-"),
            ("[a^]", "^"),
            ("[*?]", "?"),
            ("*x", "xxx"),
        ] {
            assert!(Glob::parse(pattern).unwrap().fits(name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a*", "b"),
            ("*[a-ζ]", "A"),
            ("ab[e-g]", "abc"),
            ("ab[^c]", "abc"),
            ("ab[!c]", "abd"),
            ("ab[^b-d]", "abc"),
            ("a\\*b", "ab"),
            ("a[^a]", "a"),
            ("a?b", "aäöb"),
            ("[a-z]", "ab"),
            ("[x\\-]", "z"),
        ] {
            assert!(!Glob::parse(pattern).unwrap().fits(name), "{pattern} {name}");
        }
        assert!(!Glob::parse(&"*[ab]".repeat(200)).unwrap().fits(&"a".repeat(150)), "a hostile pattern ends");
    }

    fn malformed(pattern: &str, expected: &Expect) {
        expected.assert_eq(&Glob::parse(pattern).unwrap_err());
    }

    #[test]
    fn what_go_calls_a_bad_pattern_is_malformed() {
        malformed("[]a]", &expect![[r"write \] for a ] between [ and ]"]]);
        malformed("[-]", &expect![[r"write \- for a - between [ and ]"]]);
        malformed("[x-]", &expect![[r"write \] for a ] between [ and ]"]]);
        malformed("[a-b-c]", &expect![[r"write \- for a - between [ and ]"]]);
        malformed("[", &expect!["a [ has no ]"]);
        malformed("[^", &expect!["a [ has no ]"]);
        malformed("[^bc", &expect!["a [ has no ]"]);
        malformed("a[\\", &expect!["a [ has no ]"]);
        malformed("a\\", &expect![[r"a \ at its end escapes nothing"]]);
        malformed("[c-a]", &expect!["the range c-a is backwards"]);
    }
}

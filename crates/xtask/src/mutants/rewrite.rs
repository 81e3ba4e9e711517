//! Writes all mutants of a file into it: each function chooses one of its bodies by the number of the mutant under test.

use super::functions::{Choice, Function, functions};
use super::mutant::Mutant;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

/// The number of a mutant in its crate, from one.
pub(super) type Number = usize;

/// The environment variable with the number of the mutant under test.
pub(super) const CHOSEN: &str = "MUTANT_UNDER_TEST";
/// The environment variable with the file that gets a line for each function that is called.
pub(super) const CALLED: &str = "MUTANTS_CALLED";

/// A file that contains its mutants.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// Whose lines these are, counted from one.
    pub(super) lines: Vec<(Range<usize>, Owner)>,
    /// The function of each mutant, which is named by the first mutant in it.
    pub(super) functions: BTreeMap<Number, Number>,
    /// The mutants that cannot be chosen at run time.
    pub(super) alone: BTreeSet<Number>,
}

/// What is written on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A mutant whose body has the type of the function.
    Mutant(Number),
    /// A mutant whose body is boxed, so that an error may be due to the box.
    Boxed(Number),
    /// The unchanged body of this function.
    Function(Number),
}

/// Writes these mutants of a file into it.
pub(super) fn rewrite(text: &str, mutants: &BTreeMap<Number, &Mutant>) -> anyhow::Result<Rewritten> {
    let mut functions = functions(text)?;
    functions.sort_by_key(|function| function.body.start);
    let mut rewritten =
        Rewritten { text: String::new(), lines: Vec::new(), functions: BTreeMap::new(), alone: BTreeSet::new() };
    let (mut end, mut rest) = (0, mutants.clone());
    for function in functions {
        let mut inside = BTreeMap::new();
        rest.retain(|number, mutant| {
            let range = mutant.range(text);
            let is_inside = function.body.start < range.start && range.end < function.body.end;
            is_inside.then(|| inside.insert(*number, *mutant));
            !is_inside
        });
        if let Some(first) = inside.keys().next().filter(|_| function.choice != Choice::Never) {
            rewritten.text.push_str(&text[end..function.body.start]);
            rewritten.choose(text, &function, &inside, *first);
            end = function.body.end;
        } else {
            rewritten.alone.extend(inside.into_keys());
        }
    }
    rewritten.alone.extend(rest.into_keys());
    rewritten.text.push_str(&text[end..]);
    Ok(rewritten)
}

impl Rewritten {
    /// Writes the body of a function that chooses one of several.
    fn choose(&mut self, text: &str, function: &Function, mutants: &BTreeMap<Number, &Mutant>, first: Number) {
        self.text.push_str(&format!("{{ match crate::mutant_under_test({first}) {{\n"));
        for (number, mutant) in mutants {
            let owner = match function.choice {
                Choice::Boxed(_) => Owner::Boxed(*number),
                _ => Owner::Mutant(*number),
            };
            self.functions.insert(*number, first);
            self.arm(&number.to_string(), &mutant.apply(text, function.body.clone()), &function.choice, owner);
        }
        self.arm("_", &text[function.body.clone()], &function.choice, Owner::Function(first));
        self.text.push_str("} }");
    }

    /// Writes one body, on lines of its own.
    fn arm(&mut self, pattern: &str, body: &str, choice: &Choice, owner: Owner) {
        let start = self.line();
        let arm = match choice {
            Choice::Boxed(name) => format!("{pattern} => Box::new({body}) as Box<dyn {name}>,\n"),
            _ => format!("{pattern} => {body}\n"),
        };
        self.text.push_str(&arm);
        self.lines.push((start..self.line(), owner));
    }

    fn line(&self) -> usize {
        self.text.matches('\n').count() + 1
    }
}

/// What the crate needs for it, with mutants of these numbers.
pub(super) fn chooser(largest: Number) -> String {
    let mut text = String::new();
    let _ = write!(
        text,
        r#"
pub(crate) fn mutant_under_test(function: usize) -> usize {{
    use std::io::Write as _;
    use std::sync::atomic::{{AtomicBool, Ordering}};
    static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    static RECORD: std::sync::OnceLock<Option<std::fs::File>> = std::sync::OnceLock::new();
    static CALLED: [AtomicBool; {largest} + 1] = [const {{ AtomicBool::new(false) }}; {largest} + 1];
    let record = || std::fs::OpenOptions::new().append(true).create(true).open(std::env::var_os("{CALLED}")?).ok();
    if let Some(mut file) = RECORD.get_or_init(record).as_ref() && !CALLED[function].swap(true, Ordering::Relaxed) {{
        file.write_all(format!("{{function}}\n").as_bytes()).unwrap();
    }}
    *CHOSEN.get_or_init(|| std::env::var("{CHOSEN}").map_or(0, |number| number.parse().unwrap()))
}}
"#
    );
    text
}

#[cfg(test)]
mod tests {
    use super::{Owner, rewrite};
    use crate::mutants::mutant::Mutant;
    use crate::mutants::mutant::tests::replacing;
    use std::collections::BTreeMap;

    fn numbered(mutants: &[Mutant]) -> BTreeMap<usize, &Mutant> {
        (7..).zip(mutants).collect()
    }

    #[test]
    fn every_body_is_an_arm_on_lines_of_its_own() {
        let text = "fn f(a: u8) -> bool {\n    a < 1 // low\n}\nfn g() { f(2); }\n";
        let mutants = [replacing(text, "a < 1", "true"), replacing(text, "<", ">")];
        let rewritten = rewrite(text, &numbered(&mutants)).unwrap();
        let expected = "fn f(a: u8) -> bool { match crate::mutant_under_test(7) {\n7 => {\n    true // low\n}\n8 => {\n    a > 1 // low\n}\n\
                        _ => {\n    a < 1 // low\n}\n} }\nfn g() { f(2); }\n";
        assert_eq!(rewritten.text, expected);
        assert_eq!(rewritten.lines, [(2..5, Owner::Mutant(7)), (5..8, Owner::Mutant(8)), (8..11, Owner::Function(7))]);
        assert_eq!(rewritten.functions, BTreeMap::from([(7, 7), (8, 7)]));
        assert!(rewritten.alone.is_empty());
    }

    #[test]
    fn iterators_of_different_types_are_boxed() {
        let text = "fn f() -> impl Iterator<Item = u8> { once(1) }";
        let mutants = [replacing(text, "once(1)", "empty()")];
        let rewritten = rewrite(text, &numbered(&mutants)).unwrap();
        let expected = "fn f() -> impl Iterator<Item = u8> { match crate::mutant_under_test(7) {\n\
                        7 => Box::new({ empty() }) as Box<dyn Iterator<Item = u8>>,\n\
                        _ => Box::new({ once(1) }) as Box<dyn Iterator<Item = u8>>,\n} }";
        assert_eq!(rewritten.text, expected);
        assert_eq!(rewritten.lines[0], (2..3, Owner::Boxed(7)));
    }

    #[test]
    fn what_is_computed_by_the_compiler_is_tested_alone() {
        let text = "const A: u8 = 2 * 3;\nconst fn f() -> u8 { 2 + 3 }\nfn g() -> u8 { 2 - 3 }\n";
        let mutants = [replacing(text, "*", "+"), replacing(text, "2 + 3", "0"), replacing(text, "2 - 3", "0")];
        let rewritten = rewrite(text, &numbered(&mutants)).unwrap();
        assert_eq!(rewritten.alone.into_iter().collect::<Vec<_>>(), [7, 8]);
        assert!(rewritten.text.starts_with("const A: u8 = 2 * 3;\nconst fn f() -> u8 { 2 + 3 }\nfn g() -> u8 { match"));
    }
}

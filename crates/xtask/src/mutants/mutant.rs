//! Mutants as cargo-mutants lists them, and what became of each.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// One small change of the sources.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Mutant {
    /// Place and change, such as `a.rs:3:5: replace < with > in f`.
    pub(super) name: String,
    /// The crate it changes.
    pub(super) package: String,
    /// The file it changes.
    pub(super) file: String,
    /// The text it replaces.
    pub(super) span: Span,
    /// The new text.
    pub(super) replacement: String,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Span {
    start: Position,
    end: Position,
}

/// Line and column, both counted from one, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

impl Mutant {
    /// The change without line and column, which move with every edit of the file.
    fn change(&self) -> String {
        let change = self.name.strip_prefix(&self.file).and_then(|place| place.splitn(4, ':').nth(3));
        format!("{}:{}", self.file, change.unwrap_or(&self.name))
    }

    /// The bytes of the file that it replaces.
    pub(super) fn range(&self, text: &str) -> Range<usize> {
        offset(text, self.span.start)..offset(text, self.span.end)
    }

    /// The part of the file with this range, which contains the change, with the change.
    pub(super) fn apply(&self, text: &str, part: Range<usize>) -> String {
        let changed = self.range(text);
        format!("{}{}{}", &text[part.start..changed.start], self.replacement, &text[changed.end..part.end])
    }
}

fn offset(text: &str, position: Position) -> usize {
    let lines = text.split_inclusive('\n');
    let start: usize = lines.clone().take(position.line - 1).map(str::len).sum();
    let line = lines.clone().nth(position.line - 1).unwrap_or_default();
    start + line.char_indices().nth(position.column - 1).map_or(line.len(), |(offset, _)| offset)
}

/// A name for each mutant that survives edits elsewhere in its file. Equal changes are counted: `(2 of 3)`.
pub(super) fn lasting_names(mutants: &[Mutant]) -> BTreeMap<&str, String> {
    let mut equal: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for mutant in mutants {
        equal.entry(mutant.change()).or_default().push(&mutant.name);
    }
    let named = equal.into_iter().flat_map(|(change, names)| {
        let count = names.len();
        names.into_iter().enumerate().map(move |(index, name)| match count {
            1 => (name, change.clone()),
            _ => (name, format!("{change} ({} of {count})", index + 1)),
        })
    });
    named.collect()
}

/// What the tests said about one mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A test failed.
    Caught,
    /// A test did not end in time.
    Timeout,
    /// No test failed.
    Missed,
    /// It does not compile.
    Unviable,
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Mutant, Position, Span, lasting_names};

    pub(in crate::mutants) fn mutant(place: &str, change: &str) -> Mutant {
        let file = place.split(':').next().unwrap();
        let position = Position { line: 1, column: 1 };
        Mutant {
            name: format!("{place}: {change}"),
            package: "p".into(),
            file: file.into(),
            span: Span { start: position, end: position },
            replacement: String::new(),
        }
    }

    /// The mutant that replaces the only occurrence of a text.
    pub(in crate::mutants) fn replacing(text: &str, old: &str, new: &str) -> Mutant {
        let position = |offset: usize| {
            let before = &text[..offset];
            let line = before.rfind('\n').map_or(0, |newline| newline + 1);
            Position { line: before.matches('\n').count() + 1, column: before[line..].chars().count() + 1 }
        };
        let [(start, _)] = text.match_indices(old).collect::<Vec<_>>()[..] else { panic!("{old:?} is not there once") };
        let span = Span { start: position(start), end: position(start + old.len()) };
        Mutant { span, replacement: new.into(), ..mutant("a.rs:1:1", "change") }
    }

    #[test]
    fn a_name_survives_edits_elsewhere_and_equal_changes_are_counted() {
        let mutants = [
            mutant("a.rs:3:5", "replace < with > in A::f"),
            mutant("a.rs:3:9", "replace < with > in A::f"),
            mutant("b.rs:1:1", "replace < with > in A::f"),
        ];
        let names: Vec<String> = lasting_names(&mutants).into_values().collect();
        assert_eq!(
            names,
            [
                "a.rs: replace < with > in A::f (1 of 2)",
                "a.rs: replace < with > in A::f (2 of 2)",
                "b.rs: replace < with > in A::f"
            ]
        );
    }

    #[test]
    fn the_list_of_cargo_mutants_is_read() {
        let text = r#"{"name": "a.rs:1:2: x", "package": "p", "file": "a.rs", "genre": "y", "replacement": "-",
            "span": {"start": {"line": 1, "column": 2}, "end": {"line": 1, "column": 3}}}"#;
        let mutant: Mutant = serde_json::from_str(text).unwrap();
        assert_eq!(mutant.apply("1+1", 0..3), "1-1");
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let text = "fn f() {\n    'ü' < 'ä'\n}\n";
        assert_eq!(replacing(text, "<", ">").apply(text, 9..text.len()), "    'ü' > 'ä'\n}\n");
        assert_eq!(replacing(text, "'ä'\n}", "'a' }").apply(text, 0..text.len()), "fn f() {\n    'ü' < 'a' }\n");
    }
}

//! Retired words do not come back: the field's ordinary words are in use instead.

use crate::workspace::Workspace;

/// Identifiers and phrases that were replaced.
const RETIRED: [&str; 34] = [
    "Teller",
    "teller",
    "Parting",
    "part_with",
    "Leaving",
    "SpokenFor",
    "Buried",
    "look_later",
    "look_into",
    "look_at",
    "Wish",
    "take_wish",
    "Openings",
    "Passing",
    "Patience",
    "Standing",
    "WorldState",
    "made anew",
    "make anew",
    "with a yes",
    "waits for a yes",
    "says yes to",
    "say yes to",
    "is no digest",
    "is nowhere",
    "what comes and goes",
    "a word from anybody",
    "it is told",
    "that is told",
    "is told once",
    "is said once",
    "wishes",
    "kept from now on",
    "somebody's word",
];
/// This list, and data whose names are fixed.
const EXEMPT: [&str; 1] = ["crates/xtask/src/tidy/words.rs"];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut violations = workspace.check_files(".rs", of_file)?;
    violations.extend(workspace.check_files(".md", of_file)?);
    Ok(violations)
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    if EXEMPT.contains(&path) {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(format!("{path}:{}: retired word {:?}", index + 1, retired(line)?))).collect()
}

/// The first retired word in a line, as a whole word.
fn retired(line: &str) -> Option<&'static str> {
    let is_word =
        |character: Option<char>| character.is_some_and(|character| character.is_alphanumeric() || character == '_');
    RETIRED.into_iter().find(|word| {
        line.match_indices(word)
            .any(|(at, _)| !is_word(line[..at].chars().next_back()) && !is_word(line[at + word.len()..].chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::retired;

    #[test]
    fn no_retired_word_is_in_use() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn only_whole_words_count() {
        assert_eq!(retired("struct Teller {"), Some("Teller"));
        assert_eq!((retired("storyteller Wished"), retired("256 characters")), (None, None));
    }
}

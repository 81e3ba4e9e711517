//! The lines in which two texts differ.

use super::{Edit, Shown};

/// More pairs of lines are not compared: texts that differ so much are only counted.
const MOST_PAIRS: usize = 4_000_000;

/// How many lines a text has, in words.
pub(super) fn count(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// The lines that are removed and added.
pub(super) fn compare(before: &str, after: &str) -> Edit {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let same_end = |(one, other): &(&&str, &&str)| one == other;
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(same_end).count();
    let (old_part, new_part) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    if old_part.is_empty() && new_part.is_empty() {
        // Only the last line break differs.
        let [before, after] = [before, after].map(|text| Shown::Summary(last_break(text).to_owned()));
        return Edit::Changed { before, after };
    }
    if old_part.len().saturating_mul(new_part.len()) > MOST_PAIRS {
        let [before, after] = [before, after].map(|text| Shown::Summary(count(text)));
        return Edit::Changed { before, after };
    }
    Edit::Lines { lines: edits(old_part, new_part) }
}

fn last_break(text: &str) -> &'static str {
    if text.ends_with('\n') { "with a line break at the end" } else { "without a line break at the end" }
}

/// The shortest way from one list of lines to the other.
fn edits(old: &[&str], new: &[&str]) -> Vec<String> {
    // The length of the longest common list of lines from each pair of positions on.
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            let here = row * width + column;
            common[here] = match old[row] == new[column] {
                true => common[here + width + 1] + 1,
                false => common[here + width].max(common[here + 1]),
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < old.len() || column < new.len() {
        let is_same = row < old.len() && column < new.len() && old[row] == new[column];
        let here = row * width + column;
        if is_same {
            if lines.last().is_some_and(|line| line != "...") {
                lines.push("...".to_owned());
            }
            (row, column) = (row + 1, column + 1);
        } else if column == new.len() || (row < old.len() && common[here + width] >= common[here + 1]) {
            lines.push(format!("-{}", old[row]));
            row += 1;
        } else {
            lines.push(format!("+{}", new[column]));
            column += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Edit, compare, edits};

    fn shown(before: &str, after: &str) -> String {
        match compare(before, after) {
            Edit::Lines { lines } => lines.join("|"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn only_lines_that_differ_are_shown() {
        assert_eq!(shown("a\nb\nc\n", "a\nB\nc\n"), "-b|+B");
        assert_eq!(shown("a\nb\nc\nd\n", "a\nB\nc\nD\n"), "-b|+B|...|-d|+D");
        assert_eq!(shown("a\n", "a\nb\n"), "+b");
        assert_eq!(shown("", "a\nb\n"), "+a|+b");
        assert_eq!(shown("a\na\nb\n", "a\nb\n"), "-a");
        assert!(shown("a", "a\n").contains("without a line break at the end"));
        let long = |word: &str| format!("{word}\n").repeat(3_000);
        assert!(shown(&long("a"), &long("b")).contains("3000 lines"));
        let all = |word: &str| format!("{word}\n").repeat(2_000);
        assert_eq!(shown(&all("a"), &all("b")).split('|').count(), 4_000, "as many as are compared");
    }

    /// How many lines two texts have in common, one after the other.
    fn common(old: &[&str], new: &[&str]) -> usize {
        match (old, new) {
            ([one, old @ ..], [other, new @ ..]) if one == other => 1 + common(old, new),
            ([_, rest @ ..], [_, others @ ..]) => common(rest, new).max(common(old, others)),
            _ => 0,
        }
    }

    #[test]
    fn as_few_lines_as_possible_are_shown() {
        let mut texts: Vec<Vec<&str>> = vec![Vec::new()];
        for length in 0..4 {
            let longest: Vec<_> = texts.iter().filter(|text| text.len() == length).cloned().collect();
            texts.extend(longest.iter().flat_map(|text| ["a", "b", "c"].map(|line| [&text[..], &[line]].concat())));
        }
        for old in &texts {
            for new in &texts {
                let shown = edits(old, new).iter().filter(|line| *line != "...").count();
                assert_eq!(shown, old.len() + new.len() - 2 * common(old, new), "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn the_lines_lead_from_one_text_to_the_other() {
        let texts = ["", "a", "b", "a b", "b a", "a b a", "c a b", "b b c", "a c b c a"];
        for before in texts {
            for after in texts {
                let [old, new] = [before, after].map(|text| text.split_whitespace().collect::<Vec<_>>());
                let lines = edits(&old, &new);
                let of = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
                assert_eq!(old.len() + of('+'), new.len() + of('-'), "{before:?} {after:?}: {lines:?}");
                assert_eq!(lines.iter().all(|line| line == "..."), old == new, "{before:?} {after:?}");
            }
        }
    }
}

//! Differences as text of several lines.

use super::{Difference, Edit, Shown};

/// Each line begins with a `+`, a `-` or a space. Then follows a path with its value, or after two more spaces one line of a text: of a value,
/// of a file or of a unit.
pub fn text(differences: &[Difference]) -> String {
    let mut text = String::new();
    for difference in differences {
        let path = &difference.path;
        match &difference.edit {
            Edit::Added { after } => push(&mut text, '+', &difference.to_string(), after),
            Edit::Removed { before } => push(&mut text, '-', &difference.to_string(), before),
            Edit::Changed { before, after } => {
                push(&mut text, '-', &format!("{path}: {before}"), before);
                push(&mut text, '+', &format!("{path}: {after}"), after);
            }
            Edit::Lines { lines } => {
                text.push_str(&format!(" {path}:\n"));
                for line in lines {
                    let (sign, rest) = match line.split_at_checked(1) {
                        Some((sign @ ("+" | "-"), rest)) => (sign, rest),
                        _ => (" ", line.as_str()),
                    };
                    text.push_str(&format!("{sign}  {rest}\n"));
                }
            }
        }
    }
    text
}

fn push(text: &mut String, sign: char, head: &str, shown: &Shown) {
    text.push_str(&format!("{sign}{head}\n"));
    if let Shown::Text { lines, .. } = shown {
        lines.iter().for_each(|line| text.push_str(&format!("{sign}  {line}\n")));
    }
}

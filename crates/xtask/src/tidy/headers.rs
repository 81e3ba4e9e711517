//! Every Rust file says in its first line what it is for, and none is too long to be one idea.

use crate::workspace::Workspace;

/// Longer than this a file is hardly one idea.
const LONGEST: usize = 600;

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for path in workspace.files_ending(".rs") {
        complaints.extend(of_text(path, &workspace.read(path)?));
    }
    Ok(complaints)
}

fn of_text(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let says = text.lines().next().and_then(|line| line.strip_prefix("//! ")).is_some_and(|words| words.len() > 10);
    if !says {
        complaints.push(format!("{path} does not begin with a `//!` sentence that says what it is for"));
    }
    let lines = text.lines().count();
    if lines > LONGEST {
        complaints.push(format!("{path} has {lines} lines, more than {LONGEST}: split it by ideas"));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn every_file_says_what_it_is_for() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_silent_or_endless_file_is_seen() {
        assert!(of_text("a.rs", "//! Says what it is for.\n").is_empty());
        assert_eq!(of_text("a.rs", "use b;\n").len(), 1);
        assert_eq!(of_text("a.rs", "//! x\n").len(), 1);
        assert_eq!(of_text("a.rs", &format!("//! Says what it is for.\n{}", "\n".repeat(700))).len(), 1);
    }
}

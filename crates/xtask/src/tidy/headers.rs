//! Every Rust file begins with a sentence about its purpose, and none is too long.

use crate::workspace::Workspace;

/// A longer file usually has more than one purpose.
const MAX_LINES: usize = 600;

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    workspace.check_files(".rs", of_text)
}

fn of_text(path: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let sentence = text.lines().next().and_then(|line| line.strip_prefix("//! "));
    if sentence.is_none_or(|sentence| sentence.len() <= 10) {
        violations.push(format!("{path} does not begin with a `//!` sentence about its purpose"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        violations.push(format!("{path} has {lines} lines, more than {MAX_LINES}: split it by purpose"));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn every_file_begins_with_its_purpose() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_file_without_a_purpose_or_too_long_is_reported() {
        assert!(of_text("a.rs", "//! A file with a purpose.\n").is_empty());
        assert_eq!(of_text("a.rs", "use b;\n").len(), 1);
        assert_eq!(of_text("a.rs", "//! x\n").len(), 1);
        assert_eq!(of_text("a.rs", &format!("//! A file with a purpose.\n{}", "\n".repeat(700))).len(), 1);
    }
}

//! Relative links in Markdown files resolve.

use crate::workspace::Workspace;
use std::path::{Component, Path, PathBuf};

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    for path in workspace.files_ending(".md") {
        let text = workspace.read(path)?;
        for target in targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let linked = if file.is_empty() { PathBuf::from(path) } else { resolve(path, file) };
            if !workspace.root.join(&linked).exists() {
                violations.push(format!("{path} links to {target}, which does not exist"));
            } else if !anchor.is_empty() {
                let text = workspace.read(&linked.to_string_lossy())?;
                if !anchors(&text).any(|known| known == anchor) {
                    violations.push(format!("{path} links to {target}, which has no such heading"));
                }
            }
        }
    }
    Ok(violations)
}

/// The targets of the relative links in a Markdown text, outside code blocks.
fn targets(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push(target);
            }
        }
    }
    found.retain(|target| !target.contains("://") && !target.starts_with("mailto:"));
    found
}

fn resolve(from: &str, target: &str) -> PathBuf {
    let joined = Path::new(from).parent().unwrap_or(Path::new("")).join(target);
    let mut clean = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

/// The anchors of a text's headings, as GitHub generates them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
    })
}

#[cfg(test)]
mod tests {
    use super::{anchors, resolve, targets};
    use std::path::Path;

    #[test]
    fn links_in_documents_resolve() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn links_and_anchors_are_found() {
        let text = "See [a](docs/a.md#how-it-works) and [web](https://example.org).\n```\n[x](y)\n```\n## How it works, `now`\n";
        assert_eq!(targets(text), ["docs/a.md#how-it-works"]);
        assert_eq!(anchors(text).collect::<Vec<_>>(), ["how-it-works-now"]);
        assert_eq!(resolve("docs/a/b.md", "../c.md"), Path::new("docs/c.md"));
    }
}

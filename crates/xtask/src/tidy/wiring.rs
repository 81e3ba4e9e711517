//! The wiring of a product in `operator` stays small and decides nothing.

use crate::workspace::Workspace;

/// The folders of products, each with its most lines.
const WIRING: [(&str, usize); 1] = [("crates/operator/src/autopilot/", 400)];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut violations = workspace.check_files(".rs", of_file)?;
    for (folder, most) in WIRING {
        let mut lines = 0;
        for path in workspace.files_ending(".rs").filter(|path| path.starts_with(folder)) {
            lines += workspace.read(path)?.lines().count();
        }
        if lines > most {
            violations.push(format!("{folder} has {lines} lines, more than {most}: what it decides belongs elsewhere"));
        }
    }
    Ok(violations)
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    let is_wiring = WIRING.iter().any(|(folder, _)| path.starts_with(folder));
    if is_wiring && text.contains("Verdict") { vec![format!("{path} looks at a verdict")] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::of_file;

    #[test]
    fn the_wiring_of_products_is_small_and_decides_nothing() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_verdict_in_the_wiring_is_found() {
        assert_eq!(
            of_file("crates/operator/src/autopilot/mod.rs", "match decision { Verdict::Hold(_) => {} }").len(),
            1
        );
    }
}

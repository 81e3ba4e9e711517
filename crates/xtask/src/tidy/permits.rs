//! A permit to write comes from the lease or from a command that somebody typed.

use crate::workspace::Workspace;

/// What makes a permit, and where it may be called.
const MAKERS: [(&str, &str); 2] = [
    ("Permit::typed_command(", "crates/operator/src/command/"),
    ("lease::without_election(", "crates/operator/src/command/run.rs"),
];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    workspace.check_files(".rs", of_file)
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    // A test stands for the person who types.
    let is_exempt =
        |allowed: &str| path.starts_with(allowed) || path.contains("/tests/") || path.ends_with("permits.rs");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let found = MAKERS.iter().filter(|(maker, allowed)| code.contains(maker) && !is_exempt(allowed));
    found.map(|(maker, allowed)| format!("{path} calls {maker}), which only {allowed} may")).collect()
}

#[cfg(test)]
mod tests {
    use super::of_file;

    #[test]
    fn only_the_lease_and_typed_commands_make_permits() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_permit_made_elsewhere_is_found() {
        let text = "let permit = Permit::typed_command();\n";
        assert_eq!(of_file("crates/operator/src/autopilot/mod.rs", text).len(), 1);
        assert!(of_file("crates/operator/src/command/target.rs", text).is_empty());
        assert!(of_file("crates/runtime/src/run.rs", &format!("#[cfg(test)]\n{text}")).is_empty());
    }
}

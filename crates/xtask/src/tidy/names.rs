//! No file or module has a meaningless name.

use crate::workspace::Workspace;
use std::path::Path;

const MEANINGLESS: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "manager", "types"];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    workspace.check_files(".rs", of_file)
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    let in_path = Path::new(path).with_extension("");
    let parts = in_path.iter().filter_map(|part| part.to_str());
    let modules = text
        .lines()
        .filter_map(|line| line.trim().rsplit_once("mod ").map(|(_, name)| name.trim_end_matches([';', ' ', '{'])));
    parts
        .chain(modules)
        .filter(|name| MEANINGLESS.contains(name))
        .map(|name| format!("{path}: `{name}` is meaningless; name what it contains"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::of_file;

    #[test]
    fn no_module_has_a_meaningless_name() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_meaningless_name_is_reported_in_a_path_and_in_a_module() {
        assert_eq!(of_file("crates/a/src/util/b.rs", "").len(), 1);
        assert_eq!(of_file("crates/a/src/b.rs", "pub(crate) mod helpers;\nmod types {\n").len(), 2);
        assert!(of_file("crates/a/src/controller_manager.rs", "mod order;\n").is_empty());
    }
}

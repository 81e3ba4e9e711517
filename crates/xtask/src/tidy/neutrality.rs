//! The shared hands know no product, so that a second product cannot use the first one's names by accident.

use crate::workspace::Workspace;

const CRATES: [&str; 2] = ["crates/cluster/", "crates/runtime/"];
const PRODUCTS: [&str; 3] = ["autopilot", "hyperconverged", "hco"];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    workspace.check_files(".rs", of_file)
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    if !CRATES.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split(|character: char| !character.is_ascii_alphanumeric()).collect();
    let is_named = |product: &&&str| words.iter().any(|word| word.contains(**product));
    PRODUCTS.iter().filter(is_named).map(|product| format!("{path} names a product: {product}")).collect()
}

#[cfg(test)]
mod tests {
    use super::of_file;

    #[test]
    fn the_shared_hands_name_no_product() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_product_is_found_in_any_case_and_only_in_the_shared_hands() {
        assert_eq!(of_file("crates/runtime/src/a.rs", "// the HyperConverged\nlet hco_key = Autopilot;").len(), 3);
        assert!(of_file("crates/operator/src/a.rs", "autopilot").is_empty());
    }
}

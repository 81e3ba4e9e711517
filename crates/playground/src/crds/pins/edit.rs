//! Changes a pin in the text of go.mod, go.sum and the table, and nothing else.

use super::super::table::Sdist;

/// go.mod with another version of a module.
pub(super) fn go_mod(text: &str, module: &str, old: &str, new: &str) -> String {
    let edit = |line: &str| {
        let mut fields = line.trim().trim_start_matches("require ").split_whitespace();
        let requires = fields.next() == Some(module) && fields.next() == Some(old);
        if requires { line.replacen(&format!(" {old}"), &format!(" {new}"), 1) } else { line.to_owned() }
    };
    map_lines(text, edit)
}

/// go.sum with another version of a module; `sums` are the checksums of its content and of its go.mod.
pub(super) fn go_sum(text: &str, module: &str, old: &str, new: &str, sums: [&str; 2]) -> String {
    let added = format!("{module} {new} {}\n{module} {new}/go.mod {}", sums[0], sums[1]);
    let old = [format!("{module} {old} "), format!("{module} {old}/go.mod ")];
    let is_old = |line: &&str| old.iter().any(|old| line.starts_with(old.as_str()));
    let position = text.lines().position(|line| is_old(&line)).unwrap_or(text.lines().count());
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_old(line)).collect();
    lines.insert(position, &added);
    lines.join("\n") + "\n"
}

/// The table with another version of the package.
pub(super) fn table(text: &str, old: &Sdist, new: &Sdist) -> String {
    let mut in_section = false;
    let edit = |line: &str| {
        if line.trim_start().starts_with('[') {
            in_section = line.trim() == "[sdist]";
        }
        let key = line.split('=').next().map(str::trim);
        match key {
            Some("version") if in_section => line.replace(&old.version, &new.version),
            Some("sha256") if in_section => line.replace(&old.sha256, &new.sha256),
            _ => line.to_owned(),
        }
    };
    map_lines(text, edit)
}

fn map_lines(text: &str, edit: impl FnMut(&str) -> String) -> String {
    let lines: Vec<String> = text.lines().map(edit).collect();
    lines.join("\n") + if text.ends_with('\n') { "\n" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::{Sdist, go_mod, go_sum, table};
    use expect_test::expect;

    #[test]
    fn only_the_required_version_of_the_module_changes() {
        let text = "module m\n\nrequire a.b/c v1.0.0\n\nrequire (\n\ta.b/c/d v1.0.0\n\ta.b/x v1.0.0 // indirect\n)\n\n\
                    replace a.b/x => a.b/y v1.0.0\n";
        let changed = go_mod(&go_mod(text, "a.b/x", "v1.0.0", "v1.1.0"), "a.b/c", "v1.0.0", "v2.0.0");
        expect![[r#"
            module m

            require a.b/c v2.0.0

            require (
            	a.b/c/d v1.0.0
            	a.b/x v1.1.0 // indirect
            )

            replace a.b/x => a.b/y v1.0.0
        "#]]
        .assert_eq(&changed);
        assert_eq!(go_mod(text, "a.b/x", "v0.9.0", "v1.1.0"), text);
    }

    #[test]
    fn both_checksums_are_replaced_in_place() {
        let text = "a.b/c v1.0.0 h1:a\na.b/c v1.0.0/go.mod h1:b\na.b/c/d v1.0.0 h1:c\n";
        expect![[r#"
            a.b/c v1.1.0 h1:x
            a.b/c v1.1.0/go.mod h1:y
            a.b/c/d v1.0.0 h1:c
        "#]]
        .assert_eq(&go_sum(text, "a.b/c", "v1.0.0", "v1.1.0", ["h1:x", "h1:y"]));
        expect![[r#"
            a.b/z v1.1.0 h1:x
            a.b/z v1.1.0/go.mod h1:y
        "#]]
        .assert_eq(&go_sum("", "a.b/z", "v1.0.0", "v1.1.0", ["h1:x", "h1:y"]));
    }

    #[test]
    fn only_the_section_of_the_package_changes() {
        let sdist = |version: &str, sha256: &str| Sdist {
            package: "p".to_owned(),
            version: version.to_owned(),
            sha256: sha256.to_owned(),
        };
        let text =
            "# 1.0\n[sdist] \npackage = \"p\"\nversion = \"1.0\"\nsha256 = \"aa\"\n\n[[schema]]\nversion = \"1.0\"\n";
        expect![[r#"
            # 1.0
            [sdist] 
            package = "p"
            version = "2.0"
            sha256 = "bb"

            [[schema]]
            version = "1.0"
        "#]]
        .assert_eq(&table(text, &sdist("1.0", "aa"), &sdist("2.0", "bb")));
    }
}

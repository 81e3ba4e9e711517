//! Pure crates (NOUNS, THINK and the stand-in for simulations) have no dependencies that perform I/O.

use crate::layers;
use crate::workspace::Workspace;

const FORBIDDEN: [&str; 9] =
    ["tokio", "hyper", "tower", "reqwest", "kube-client", "kube-runtime", "tracing", "rand", "getrandom"];

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in workspace.own() {
        if layers::find(&package.name).is_some_and(layers::Layer::is_pure) {
            let tree = workspace.normal_tree(&package.name)?;
            violations.extend(disabled_rules(workspace, &package.name)?);
            violations.extend(forbidden_in(&tree).map(|found| format!("crate {} depends on {found}", package.name)));
        }
    }
    Ok(violations)
}

/// The places where a pure crate disables the clippy rules that keep it pure.
fn disabled_rules(workspace: &Workspace, package: &str) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for path in workspace.files_ending(".rs").filter(|path| path.starts_with(&format!("crates/{package}/"))) {
        // A test may print.
        let text = workspace.read(path)?.replace("#[expect(clippy::disallowed_macros, reason = \"a test ", "");
        if text.contains("clippy::disallowed") {
            found.push(format!("{path} disables a clippy rule that keeps its crate pure"));
        }
    }
    Ok(found)
}

/// The forbidden packages in the output of `cargo tree --prefix=none`.
fn forbidden_in(tree: &str) -> impl Iterator<Item = &'static str> {
    FORBIDDEN.into_iter().filter(move |name| tree.lines().any(|line| line.split(' ').next() == Some(name)))
}

#[cfg(test)]
mod tests {
    use super::forbidden_in;
    use crate::generated::{METHODS, TYPES, pure_clippy_text};
    use std::process::Command;

    #[test]
    fn think_crates_build_without_io() {
        super::super::expect_none(super::check);
    }

    #[test]
    fn a_forbidden_package_is_matched_by_its_whole_name() {
        let tree = "api v0.1.0 (/x)\nserde v1.0.0\ntokio v1.54.1\ntokio-util v0.7.0\ntower-service v0.3.0\n";
        assert_eq!(forbidden_in(tree).collect::<Vec<_>>(), ["tokio"]);
    }

    /// Clippy with the generated rules reports every disallowed item of a crate that uses all of them.
    #[test]
    fn think_crates_cannot_use_clock_environment_files_or_randomness() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "Cargo.toml",
            "[package]\nname = \"impure\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n",
        );
        write("clippy.toml", &pure_clippy_text());
        let methods = METHODS.iter().map(|(path, _)| {
            // A generic function that is only named needs its type arguments.
            let path = match *path {
                "std::fs::read"
                | "std::fs::read_to_string"
                | "std::fs::read_dir"
                | "std::fs::create_dir_all"
                | "std::fs::remove_file"
                | "std::fs::metadata"
                | "std::fs::File::open"
                | "std::fs::File::create"
                | "std::fs::create_dir"
                | "std::fs::remove_dir_all"
                | "std::fs::exists"
                | "std::fs::canonicalize"
                | "std::fs::OpenOptions::open"
                | "std::net::TcpListener::bind"
                | "std::net::UdpSocket::bind"
                | "std::net::TcpStream::connect"
                | "std::process::Command::new"
                | "std::env::var"
                | "std::env::var_os" => {
                    format!("{path}::<&str>")
                }
                "std::fs::write" | "std::fs::copy" | "std::fs::rename" => format!("{path}::<&str, &str>"),
                "std::thread::spawn" => format!("{path}::<fn(), ()>"),
                other => other.to_owned(),
            };
            format!("    let _ = {path};\n")
        });
        let types = TYPES.iter().enumerate().map(|(index, (path, _))| match *path {
            "std::collections::HashMap" => format!("pub type T{index} = {path}<u8, u8>;\n"),
            "std::collections::HashSet" => format!("pub type T{index} = {path}<u8>;\n"),
            other => format!("pub type T{index} = {other};\n"),
        });
        let body: String = methods.collect();
        let types: String = types.collect();
        write("lib.rs", &format!("//! Impure.\n{types}\npub fn f() {{\n{body}    println!();\n}}\n"));
        let output = Command::new("cargo")
            .args(["clippy", "--offline", "--quiet"])
            .env("CARGO_TARGET_DIR", folder.path().join("target"))
            .env("CLIPPY_CONF_DIR", folder.path())
            .current_dir(folder.path())
            .output()
            .unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        for (path, _) in METHODS {
            assert!(
                reported.contains(&format!("use of a disallowed method `{path}`")),
                "{path} was not reported:\n{reported}"
            );
        }
        for (path, _) in TYPES {
            assert!(
                reported.contains(&format!("use of a disallowed type `{path}`")),
                "{path} was not reported:\n{reported}"
            );
        }
        assert!(reported.contains("use of a disallowed macro `std::println`"), "{reported}");
    }
}

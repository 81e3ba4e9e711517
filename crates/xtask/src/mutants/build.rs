//! A copy of the workspace in which mutants are written and the tests of a crate are built.

use crate::workspace::Workspace;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The copy, in a folder that belongs to it.
pub(super) struct Copy {
    /// The copied workspace.
    pub(super) root: PathBuf,
    target: PathBuf,
}

/// What became of a build.
pub(super) enum Built {
    /// The test program.
    Program(PathBuf),
    Failed(Vec<CompileError>),
}

/// An error of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CompileError {
    /// The file and line of each place that it is about, the most important ones first.
    pub(super) places: Vec<(String, usize)>,
    pub(super) text: String,
}

impl Copy {
    /// Copies the workspace. What an earlier copy has built is used again.
    pub(super) fn of(workspace: &Workspace, folder: &Path) -> anyhow::Result<Copy> {
        let copy = Copy::below(folder);
        if copy.root.exists() {
            std::fs::remove_dir_all(&copy.root).with_context(|| format!("could not remove {}", copy.root.display()))?;
        }
        for file in &workspace.files {
            let to = copy.root.join(file);
            std::fs::create_dir_all(to.parent().unwrap_or(&copy.root))?;
            std::fs::copy(workspace.root.join(file), &to).with_context(|| format!("could not copy {file}"))?;
        }
        Ok(copy)
    }

    /// The one in this folder.
    pub(super) fn below(folder: &Path) -> Copy {
        Copy { root: folder.join("workspace"), target: folder.join("target") }
    }

    pub(super) fn read(&self, file: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(self.root.join(file)).with_context(|| format!("could not read {file} in the copy"))
    }

    pub(super) fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        std::fs::write(self.root.join(file), text).with_context(|| format!("could not write {file} in the copy"))
    }

    /// Builds the unit tests of a crate.
    pub(super) fn build(&self, package: &str) -> anyhow::Result<Built> {
        let mut command = Command::new("cargo");
        command.args(["test", "--lib", "--no-run", "--locked", "--profile=mutants", "--message-format=json"]);
        command.args(["--package", package]).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // A mutant often leaves something unused.
        command.env("RUSTFLAGS", "--cap-lints=allow");
        let built = command.stderr(Stdio::null()).output().context("could not run cargo")?;
        let messages = String::from_utf8_lossy(&built.stdout);
        let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if built.status.success() {
            let program = messages.iter().find_map(|message| message["executable"].as_str());
            return Ok(Built::Program(program.context("cargo did not report the test program")?.into()));
        }
        let errors: Vec<CompileError> = messages.iter().filter_map(compile_error).collect();
        if errors.is_empty() {
            bail!("cargo failed to build the tests of {package}: run `cargo test --lib` in {}", self.root.display());
        }
        Ok(Built::Failed(errors))
    }
}

/// The error in a message of cargo, if it is about a place.
fn compile_error(message: &Value) -> Option<CompileError> {
    let message = &message["message"];
    if message["level"] != "error" {
        return None;
    }
    let (primary, others): (Vec<&Value>, Vec<&Value>) =
        message["spans"].as_array()?.iter().partition(|span| span["is_primary"] == true);
    let places: Vec<(String, usize)> = primary.into_iter().chain(others).flat_map(places).collect();
    let text = message["rendered"].as_str().unwrap_or_default().to_owned();
    (!places.is_empty()).then_some(CompileError { places, text })
}

/// A place, and where the macro is used that it is in.
fn places(span: &Value) -> Vec<(String, usize)> {
    let spans =
        std::iter::successors(Some(span), |span| Some(&span["expansion"]["span"]).filter(|span| !span.is_null()));
    let place = |span: &Value| Some((span["file_name"].as_str()?.to_owned(), span["line_start"].as_u64()? as usize));
    spans.filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::{CompileError, compile_error};
    use serde_json::json;

    #[test]
    fn an_error_is_about_its_places_and_the_uses_of_its_macros() {
        let span = |file: &str, line: u8, is_primary: bool| json!({"file_name": file, "line_start": line, "is_primary": is_primary, "expansion": null});
        let mut in_macro = span("std.rs", 90, true);
        in_macro["expansion"] = json!({"span": span("a.rs", 3, true)});
        let message = |level: &str| json!({"message": {"level": level, "rendered": "no", "spans": [span("a.rs", 9, false), in_macro]}});
        let places = vec![("std.rs".into(), 90), ("a.rs".into(), 3), ("a.rs".into(), 9)];
        assert_eq!(compile_error(&message("error")), Some(CompileError { places, text: "no".into() }));
        assert_eq!(compile_error(&message("warning")), None);
        assert_eq!(compile_error(&json!({"message": {"level": "error", "spans": []}})), None, "a summary");
        assert_eq!(compile_error(&json!({"reason": "build-finished"})), None);
    }
}

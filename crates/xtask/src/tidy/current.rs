//! Generated files are what `cargo xtask gen` would write.

use crate::generated;
use crate::workspace::Workspace;

pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let files = generated::files(workspace)?;
    let stale = files.into_iter().filter(|file| workspace.read(&file.path).ok().as_ref() != Some(&file.text));
    Ok(stale.map(|file| format!("{} is out of date: run `cargo xtask gen`", file.path)).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_current() {
        super::super::expect_none(super::check);
    }
}

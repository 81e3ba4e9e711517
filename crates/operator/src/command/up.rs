//! `up`: starts the playground, which is a binary of its own so that the operator never contains it.

use anyhow::{Context, bail};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "virtpilot-playground";

/// All arguments are passed to the playground; `virtpilot up --help` prints its help.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments of `virtpilot-playground up`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Replaces this process by the playground, so that signals and the exit code are its own.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let program = find()?;
    let error = Command::new(&program).arg0("virtpilot").arg("up").args(&arguments.arguments).exec();
    let failed: Result<Infallible, _> = Err(error);
    failed.with_context(|| format!("could not start {}", program.display())).map(|_| ())
}

/// Looks beside this binary first, so that the versions match; then on the PATH.
fn find() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("could not determine the path of this program")?;
    let beside = own.with_file_name(PROGRAM);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    match std::iter::once(beside.clone()).chain(on_path).find(|file| file.is_file()) {
        Some(program) => Ok(program),
        None => bail!(
            "{PROGRAM} was found neither beside this program ({}) nor on the PATH; \
             build the whole workspace (\"cargo build --workspace\"), or install {PROGRAM}",
            beside.display()
        ),
    }
}

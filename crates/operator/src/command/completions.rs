//! `completions`: prints the completion script of a shell.

use super::print;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(arguments: &Arguments, mut program: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "virtpilot", &mut script);
    print(&String::from_utf8_lossy(&script))
}

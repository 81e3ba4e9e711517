//! The `virtpilot` binary.

mod command;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Runs a virtualization platform by itself, safely.
#[derive(Parser)]
#[command(version, name = "virtpilot", max_term_width = 110, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a playground: a real control plane on this machine that looks like a small OpenShift
    #[command(disable_help_flag = true)]
    Up(command::up::Arguments),
    /// Print the version
    Version(command::version::Arguments),
    /// Print completions for a shell
    Completions(command::completions::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Up(arguments) => command::up::run(&arguments),
        Command::Version(arguments) => command::version::run(&arguments),
        Command::Completions(arguments) => command::completions::run(&arguments, Arguments::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

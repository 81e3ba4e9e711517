//! The `virtpilot` binary.

mod autopilot;
mod command;
mod metrics;
mod pack;
mod serve;

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
    /// Keep the platform's objects as they should be
    Run(command::run::Arguments),
    /// Print the objects the catalogue wants, and write nothing
    Render(command::render::Arguments),
    /// Show what the autopilot does about every object, and why
    Status(command::status::Arguments),
    /// Say yes to one change that restarts nodes
    Approve(command::approve::Arguments),
    /// Explain what users may write
    Explain(command::explain::Arguments),
    /// Start a playground: a real control plane on this machine that looks like a small OpenShift
    #[command(disable_help_flag = true)]
    Up(command::up::Arguments),
    /// Print the version
    Version(command::version::Arguments),
    /// Print completions for a shell
    Completions(command::completions::Arguments),
}

fn main() -> ExitCode {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Arguments::parse().command {
        Command::Run(arguments) => done(command::run::run(arguments)),
        Command::Render(arguments) => command::render::run(&arguments),
        Command::Status(arguments) => done(command::status::run(&arguments)),
        Command::Approve(arguments) => done(command::approve::run(&arguments)),
        Command::Explain(arguments) => done(command::explain::run(&arguments)),
        Command::Up(arguments) => done(command::up::run(&arguments)),
        Command::Version(arguments) => done(command::version::run(&arguments)),
        Command::Completions(arguments) => done(command::completions::run(&arguments, Arguments::command())),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

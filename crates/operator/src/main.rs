//! The `virtpilot` binary.

mod autopilot;
mod command;
mod images;
mod pack;

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Configures and maintains KubeVirt and OpenShift Virtualization clusters.
#[derive(Parser)]
#[command(version, name = "virtpilot", max_term_width = 110, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator: reconcile the platform's objects
    Run(command::run::Arguments),
    /// Print the objects that the catalogue renders; nothing is written
    Render(command::render::Arguments),
    /// Show the state of every object, and why
    Status(command::status::Arguments),
    /// Print the facts about a cluster, in the format of `render --facts`
    Facts(command::facts::Arguments),
    /// Approve one change that restarts nodes
    Approve(command::approve::Arguments),
    /// Restore an object as it was before its adoption, and stop managing it
    Rollback(command::rollback::Arguments),
    /// Stop managing every object before an uninstall; nothing is deleted, every value stays
    Handback(command::handback::Arguments),
    /// Explain what users may change with annotations
    Explain(command::explain::Arguments),
    /// Start a playground: a real control plane on this machine with the objects of a small OpenShift cluster
    #[command(disable_help_flag = true)]
    Up(command::up::Arguments),
    /// Print the version
    Version(command::version::Arguments),
    /// Print completions for a shell
    Completions(command::completions::Arguments),
}

fn main() -> ExitCode {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Arguments::parse_from(with_default_command(
        std::env::args_os().collect(),
        std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
    ))
    .command
    {
        Command::Run(arguments) => done(command::run::run(arguments)),
        Command::Render(arguments) => command::render::run(&arguments),
        Command::Status(arguments) => done(command::status::run(&arguments)),
        Command::Facts(arguments) => done(command::facts::run(&arguments)),
        Command::Approve(arguments) => done(command::approve::run(&arguments)),
        Command::Rollback(arguments) => done(command::rollback::run(&arguments)),
        Command::Handback(arguments) => command::handback::run(&arguments),
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

/// In a pod the predecessor runs without arguments, and it takes the flags of `run` without a subcommand; so do we.
fn with_default_command(mut arguments: Vec<OsString>, in_a_pod: bool) -> Vec<OsString> {
    let ours = ["-h", "--help", "-V", "--version"];
    let is_run = match arguments.get(1).map(|first| first.to_string_lossy()) {
        None => in_a_pod,
        Some(first) => first.starts_with('-') && !ours.contains(&first.as_ref()),
    };
    if is_run {
        arguments.insert(1, "run".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::with_default_command;

    #[test]
    fn the_predecessors_command_lines_start_the_operator() {
        let parsed = |words: &[&str], in_a_pod: bool| {
            let words = with_default_command(words.iter().map(Into::into).collect(), in_a_pod);
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(parsed(&["virtpilot"], true), "virtpilot run");
        assert_eq!(parsed(&["virtpilot"], false), "virtpilot", "outside a pod the help is printed");
        assert_eq!(parsed(&["virtpilot", "--leader-elect"], false), "virtpilot run --leader-elect");
        assert_eq!(parsed(&["virtpilot", "--version"], true), "virtpilot --version");
        assert_eq!(parsed(&["virtpilot", "status"], true), "virtpilot status");
    }
}

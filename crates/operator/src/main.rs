//! The `virtpilot` binary.

mod advisor;
mod autopilot;
mod command;
mod command_line;
mod debug;
mod failure;
mod fleet;
mod images;
mod metrics;
mod pack;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsStr;
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
    /// Show what would be created, changed and deleted, and which nodes would restart, or a plan of the advisor; nothing is written
    Plan(command::plan::Arguments),
    /// Print the facts about a cluster, in the format of `render --facts`
    Facts(command::facts::Arguments),
    /// Approve changes that restart nodes or delete many objects, after showing them, or a plan of the advisor; or take approvals back
    Approve(command::approve::Arguments),
    /// Restore an object as it was before its adoption, and stop managing it; or plan the rollback of a profile
    Rollback(command::rollback::Arguments),
    /// Stop managing every object before an uninstall; nothing is deleted, every value stays
    Handback(command::handback::Arguments),
    /// List the features of the asset pack, or explain one
    Features(command::features::Arguments),
    /// Explain why an asset, an object or a profile is in its state, and what users may set
    Explain(command::explain::Arguments),
    /// Check the cluster, the rights of the operator and the running operator
    Check(command::check::Arguments),
    /// Show and explain the machines of the fleet, check its hypervisors, and convert manifests of its predecessor
    Fleet(command::fleet::Arguments),
    /// List the CI jobs that wait for a machine of the fleet, and why
    Queue(command::queue::Arguments),
    /// Find wrong annotations in YAML files, and faults of asset packs, without a cluster
    Lint(command::lint::Arguments),
    /// Print the objects that install the operator
    Manifests(command::manifests::Arguments),
    /// Print the role that the operator needs for an asset pack
    Rbac(command::rbac::Arguments),
    /// Start a playground: a real control plane on this machine with the objects of a small OpenShift cluster
    #[command(disable_help_flag = true)]
    Up(command::up::Arguments),
    /// Print the version
    Version(command::version::Arguments),
    /// Print completions for a shell
    Completions(command::completions::Arguments),
    /// Print manual pages
    Man(command::man::Arguments),
}

fn main() -> ExitCode {
    command::completions::answer(program);
    let in_a_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let words = match command_line::compatible(std::env::args_os().collect(), in_a_pod, &flags_of_run()) {
        Ok(words) => words,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let parsed = program().try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            // The library's 2 means that changes are pending.
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let flags = matches.subcommand_matches("run").map(changed_flags).unwrap_or_default();
    run(arguments.command, &flags).unwrap_or_else(|error| {
        for line in failure::lines(&error) {
            eprintln!("error: {line}");
        }
        ExitCode::FAILURE
    })
}

fn run(command: Command, flags: &[String]) -> anyhow::Result<ExitCode> {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    match command {
        Command::Run(arguments) => done(command::run::run(arguments, flags)),
        Command::Render(arguments) => command::render::run(&arguments),
        Command::Status(arguments) => command::status::run(&arguments),
        Command::Plan(arguments) => command::plan::run(&arguments),
        Command::Facts(arguments) => done(command::facts::run(&arguments)),
        Command::Approve(arguments) => command::approve::run(&arguments),
        Command::Rollback(arguments) => done(command::rollback::run(&arguments)),
        Command::Handback(arguments) => command::handback::run(&arguments),
        Command::Features(arguments) => done(command::features::run(&arguments)),
        Command::Explain(arguments) => done(command::explain::run(&arguments)),
        Command::Check(arguments) => command::check::run(&arguments),
        Command::Fleet(arguments) => command::fleet::run(&arguments),
        Command::Queue(arguments) => command::queue::run(&arguments),
        Command::Lint(arguments) => command::lint::run(&arguments),
        Command::Manifests(arguments) => done(command::manifests::run(arguments)),
        Command::Rbac(arguments) => done(command::rbac::run(&arguments)),
        Command::Up(arguments) => done(command::up::run(&arguments)),
        Command::Version(arguments) => done(command::version::run(&arguments)),
        Command::Completions(arguments) => done(command::completions::run(&arguments)),
        Command::Man(arguments) => done(command::man::run(&arguments, program())),
    }
}

/// The program by the name that the user typed: it may be a plugin of kubectl.
fn program() -> clap::Command {
    let words: Vec<_> = std::env::args_os().collect();
    match command::invoked_as(&words).as_deref() {
        Some("kubectl-virtpilot") => Arguments::command().bin_name("kubectl virtpilot"),
        _ => Arguments::command(),
    }
}

/// The long flags of `run`.
fn flags_of_run() -> Vec<String> {
    let program = Arguments::command();
    let run = program.find_subcommand("run").into_iter().flat_map(clap::Command::get_arguments);
    run.filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

/// The flags of `run` that differ from their defaults, as they can be typed.
fn changed_flags(matches: &ArgMatches) -> Vec<String> {
    let (program, mut flags) = (Arguments::command(), Vec::new());
    for argument in program.find_subcommand("run").into_iter().flat_map(clap::Command::get_arguments) {
        let Some(long) = argument.get_long() else { continue };
        let Ok(Some(given)) = matches.try_get_raw(argument.get_id().as_str()) else { continue };
        let given: Vec<&OsStr> = given.collect();
        if given != argument.get_default_values() {
            let values: Vec<_> = given.iter().map(|value| value.to_string_lossy()).collect();
            flags.push(format!("--{long}={}", values.join(",")));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::{Arguments, changed_flags};
    use clap::CommandFactory;

    #[test]
    fn every_variable_of_a_flag_is_in_the_reference() {
        let program = Arguments::command();
        let flags = program.get_subcommands().flat_map(clap::Command::get_arguments);
        let variables: Vec<_> = flags.filter_map(|flag| flag.get_env()?.to_str()).collect();
        assert!(!variables.is_empty());
        for variable in variables {
            assert!(api::environment::VARIABLES.iter().any(|row| row.name == variable), "{variable}");
        }
    }

    #[test]
    fn only_flags_that_differ_from_their_defaults_are_shown() {
        let words = ["virtpilot", "run", "--leader-elect", "--prune=true", "--namespace", "home", "--verify-every=24h"];
        let matches = Arguments::command().get_matches_from(words);
        let flags = changed_flags(matches.subcommand_matches("run").unwrap());
        assert_eq!(flags, ["--namespace=home", "--leader-elect=true"]);
    }
}

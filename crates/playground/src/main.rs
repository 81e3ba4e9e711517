//! The playground's own binary: starts a control plane, counts requests, and supervises what it started.

mod command;

use clap::{Parser, Subcommand};
use command::Ended;
use playground::Trouble;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A real control plane on this machine that looks like a small OpenShift.
#[derive(Parser)]
#[command(version, name = "virtpilot-playground", max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a playground and keep it until Ctrl-C
    Up(command::up::Arguments),
    /// Build and fetch everything a playground is made of, and start nothing
    Prepare,
    /// Count the requests of a running playground, from its audit log
    Requests(command::requests::Arguments),
    /// List the foreign CRDs and where they come from
    Crds,
    /// Own programs and end them when standard input closes
    #[command(hide = true)]
    Supervise {
        #[arg(long)]
        folder_in: Option<PathBuf>,
        #[arg(long)]
        keep: bool,
    },
    /// Become a program that ends with its parent
    #[command(hide = true)]
    Tether {
        #[arg(long)]
        parent: u32,
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    // These two run on the main thread and without the rest: the kernel ties a program to the thread that started it.
    match command {
        Command::Tether { parent, command } => {
            eprintln!("{}", playground::process::tether(parent, &command));
            ExitCode::from(127)
        }
        Command::Supervise { folder_in, keep } => supervise(folder_in.as_deref(), keep),
        command => run(command),
    }
}

fn supervise(place: Option<&Path>, keep: bool) -> ExitCode {
    let result = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(playground::process::supervise(place, keep)),
        Err(error) => Err(Trouble::new("could not start the supervisor", "run again").from(error)),
    };
    if let Err(trouble) = &result {
        eprintln!("error: {trouble}");
    }
    // At once: a read of standard input may still be under way in a thread and must not hold us up.
    std::process::exit(i32::from(result.is_err()));
}

fn run(command: Command) -> ExitCode {
    // The only TLS provider of the tree; a second installation is refused and harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: could not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        command::listen()?;
        match command {
            Command::Up(arguments) => command::up::run(arguments).await,
            Command::Prepare => command::prepare::run().await,
            Command::Requests(arguments) => command::requests::run(&arguments),
            Command::Crds => command::crds::run(),
            Command::Supervise { .. } | Command::Tether { .. } => Ok(()),
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Trouble(trouble)) => {
            eprintln!("error: {trouble}");
            ExitCode::FAILURE
        }
        Err(Ended::Interrupted) => {
            eprintln!(
                "\ninterrupted: what was fetched and built so far is kept\n  fix: run the same command again to continue"
            );
            ExitCode::from(130)
        }
        Err(Ended::PipeClosed) => ExitCode::SUCCESS,
    }
}

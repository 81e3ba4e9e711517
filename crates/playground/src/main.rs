//! The playground binary: starts a control plane, counts API requests and supervises child processes.

mod command;

use clap::{Parser, Subcommand};
use command::EarlyExit;
use playground::UserError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// A real Kubernetes control plane on this machine, populated like a small OpenShift cluster.
#[derive(Parser)]
#[command(version, name = "virtpilot-playground", max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a playground and keep it running until Ctrl-C
    Up(command::up::Arguments),
    /// Build and fetch everything a playground needs without starting one
    Prepare(command::prepare::Arguments),
    /// Count the API requests of a running playground, from its audit log
    Requests(command::requests::Arguments),
    /// List the third-party CRDs and their sources, check the sources, or move them to their newest versions
    Crds(command::crds::Arguments),
    /// Run child processes and kill them when standard input closes
    #[command(hide = true)]
    Supervise {
        #[arg(long)]
        folder_in: Option<PathBuf>,
        #[arg(long)]
        keep: bool,
    },
    /// Play GitHub's runner in a machine of the stand-in of Proxmox VE
    #[command(hide = true)]
    Runner {
        #[arg(long)]
        folder: PathBuf,
        #[arg(long)]
        seconds: f64,
    },
    /// Replace this process with a program that is killed when its parent dies
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
    // Both must run on the main thread: the parent-death signal follows the thread that started the child.
    match command {
        Command::Tether { parent, command } => {
            eprintln!("{}", playground::process::tether(parent, &command));
            ExitCode::from(127)
        }
        Command::Supervise { folder_in, keep } => supervise(folder_in.as_deref(), keep),
        Command::Runner { folder, seconds } => play_runner(&folder, seconds),
        command => run(command),
    }
}

fn supervise(folder_in: Option<&Path>, keep: bool) -> ExitCode {
    let result = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(playground::process::supervise(folder_in, keep)),
        Err(error) => Err(UserError::new("could not start the supervisor", "run again").with_source(error)),
    };
    if let Err(error) = &result {
        eprintln!("error: {error}");
    }
    // Exit at once: a blocking read of standard input may still be pending in another thread.
    std::process::exit(i32::from(result.is_err()));
}

/// The exit codes are those of the real runner.
fn play_runner(folder: &Path, seconds: f64) -> ExitCode {
    let job = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let result = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(playground::machines::run_runner(folder, job)),
        Err(error) => Err(UserError::new("could not start the runner", "run again").with_source(error)),
    };
    match result {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> ExitCode {
    // Installing the provider a second time fails and is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: could not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        command::install_signal_handlers()?;
        match command {
            Command::Up(arguments) => command::up::run(arguments).await,
            Command::Prepare(arguments) => command::prepare::run(&arguments).await,
            Command::Requests(arguments) => command::requests::run(&arguments),
            Command::Crds(arguments) => command::crds::run(arguments).await,
            Command::Supervise { .. } | Command::Tether { .. } | Command::Runner { .. } => Ok(()),
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(EarlyExit::Failed(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        Err(EarlyExit::Interrupted) => {
            eprintln!(
                "\ninterrupted: everything fetched and built so far is kept\n  fix: run the same command again to continue"
            );
            ExitCode::from(130)
        }
        Err(EarlyExit::PipeClosed) => ExitCode::SUCCESS,
    }
}

//! `up`: starts a playground and prints how to use it.

use super::requests::Format;
use super::{EarlyExit, print, shutdown_requested, story, unless_interrupted};
use playground::certificates::ADMIN_USER;
use playground::scene::{PRESETS, Pool};
use playground::{Options, Playground, Progress, Scene, Timing, UserError};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The cluster to set up
    #[arg(long, default_value = "small", value_parser = PRESETS)]
    scene: String,
    /// Number of workers; overrides the scene
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Number of masters; overrides the scene
    #[arg(long, value_name = "N")]
    masters: Option<usize>,
    /// An additional machine config pool, such as infra=2; may be repeated
    #[arg(long, value_name = "NAME=NODES", value_parser = parse_pool)]
    pool: Vec<Pool>,
    /// The served HyperConverged version
    #[arg(long, default_value = "v1", value_parser = ["v1", "v1beta1"])]
    hco: String,
    /// The release of the descheduler operator
    #[arg(long, default_value = "5.2", value_parser = ["5.1", "5.2", "5.3"])]
    descheduler: String,
    /// The API server's port; by default a free one
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Let etcd call fsync, as on a real cluster
    #[arg(long)]
    fsync: bool,
    /// Keep the folder with all logs
    #[arg(long)]
    keep: bool,
    /// Keep running until Ctrl-C even without a terminal
    #[arg(long, conflicts_with = "once")]
    stay: bool,
    /// Run the sample commands and exit even in a terminal
    #[arg(long)]
    once: bool,
    /// Run a stand-in of the machine-config operator: it renders MachineConfigs and restarts nodes, within seconds
    #[arg(long)]
    machine_config_operator: bool,
    /// Demonstrate the autopilot step by step and check every step, with a stand-in of the machine-config operator
    #[arg(long, conflicts_with = "output")]
    story: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

fn parse_pool(text: &str) -> Result<Pool, String> {
    let (name, nodes) = text.split_once('=').ok_or("write it as NAME=NODES, such as infra=2")?;
    let nodes = nodes.parse().map_err(|_| format!("{nodes:?} is not a number of nodes"))?;
    Ok(Pool { name: name.to_owned(), nodes, gpu: false })
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), EarlyExit> {
    let stay = arguments.stay || (std::io::stdin().is_terminal() && !arguments.once);
    let mut scene = Scene::preset(&arguments.scene)?;
    scene.workers = arguments.workers.unwrap_or(scene.workers);
    scene.masters = arguments.masters.unwrap_or(scene.masters);
    scene.pools.extend(arguments.pool);
    scene.hco = arguments.hco;
    scene.descheduler = arguments.descheduler;
    scene.check()?;
    let options = Options {
        scene: Some(scene.clone()),
        fsync: arguments.fsync,
        port: arguments.port,
        keep: arguments.keep,
        wait_for_slot: false,
    };
    let started = Instant::now();
    let mut playground = unless_interrupted(Playground::start(&options, Progress::detect())).await?;
    let operator = match arguments.machine_config_operator || arguments.story {
        true => Some(unless_interrupted(playground.start_machine_config_operator(Timing::demo())).await?),
        false => None,
    };
    let seconds = started.elapsed().as_secs_f64();
    let version = unless_interrupted(server_version(&playground)).await?;
    match arguments.output {
        Format::Json => {
            let description = json!({
                "address": playground.address(),
                "folder": playground.folder(),
                "kubeconfig": playground.kubeconfig(),
                "kubernetes": version,
                "machineConfigOperator": operator.is_some(),
                "scene": scene,
                "seconds": (seconds * 10.0).round() / 10.0,
            });
            writeln!(std::io::stdout().lock(), "{description:#}")?;
        }
        Format::Text => {
            let kubeconfig = playground.kubeconfig();
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nThe playground is up after {seconds:.1} s.\n")?;
            writeln!(out, "  API server  {} (Kubernetes {version})", playground.address())?;
            writeln!(out, "  kubeconfig  {}", kubeconfig.display())?;
            writeln!(out, "  scene       {}", scene.summary())?;
            if operator.is_some() {
                writeln!(out, "  nodes       restarted by a stand-in of the machine-config operator, within seconds")?;
            }
            writeln!(out, "\nTry:\n")?;
            for command in sample_commands(&playground) {
                writeln!(out, "  {command}")?;
            }
            writeln!(out)?;
        }
    }
    if let (true, Some(operator)) = (arguments.story, &operator) {
        unless_interrupted(story::run(&mut playground, &scene.hco, operator)).await?;
    }
    if stay {
        eprintln!("The playground runs until Ctrl-C.");
        tokio::select! {
            () = shutdown_requested() => {}
            error = playground.wait_for_failure() => return Err(error.into()),
        }
        drop(operator);
        drop(playground);
        eprintln!(
            "\nThe playground has stopped: no process, no port{}.",
            if arguments.keep { "; its folder is kept" } else { " and no file is left" }
        );
        return Ok(());
    }
    match arguments.output {
        Format::Json => Ok(()),
        Format::Text => unless_interrupted(run_sample_commands(&playground)).await,
    }
}

fn sample_commands(playground: &Playground) -> [String; 3] {
    let folder = playground.folder().display();
    [
        format!("{folder}/kubectl get nodes"),
        format!("{folder}/kubectl get machineconfigpools,hyperconvergeds --all-namespaces"),
        format!("{folder}/requests --user {ADMIN_USER}"),
    ]
}

/// Runs the sample commands exactly as printed; used without a terminal.
async fn run_sample_commands(playground: &Playground) -> Result<(), UserError> {
    for command in sample_commands(playground) {
        print(&format!("$ {command}\n"))?;
        let status = tokio::process::Command::new("sh").args(["-c", &command]).kill_on_drop(true).status().await;
        print("\n")?;
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(UserError::new(
                    format!("`{command}` ended with {status}"),
                    "this is a bug, please report it",
                ));
            }
            Err(error) => {
                return Err(
                    UserError::new(format!("`{command}` cannot be run"), "install a POSIX shell").with_source(error)
                );
            }
        }
    }
    Ok(())
}

async fn server_version(playground: &Playground) -> Result<String, UserError> {
    let info = playground.client().apiserver_version().await;
    let info = info
        .map_err(|error| UserError::new("could not read the API server's version", "run again").with_source(error))?;
    Ok(info.git_version)
}

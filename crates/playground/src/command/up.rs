//! `up`: a playground, and three things to try on it.

use super::requests::Format;
use super::{Ended, asked_to_end, say, story, unless_interrupted};
use playground::scene::{PRESETS, Pool};
use playground::{Options, Playground, Progress, Scene, Trouble};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What the cluster looks like
    #[arg(long, default_value = "small", value_parser = PRESETS)]
    scene: String,
    /// How many workers, instead of the scene's
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// How many masters, instead of the scene's
    #[arg(long, value_name = "N")]
    masters: Option<usize>,
    /// A further pool of machines, such as infra=2; may be given several times
    #[arg(long, value_name = "NAME=NODES", value_parser = parse_pool)]
    pool: Vec<Pool>,
    /// The HyperConverged version the cluster serves
    #[arg(long, default_value = "v1", value_parser = ["v1", "v1beta1"])]
    hco: String,
    /// The line of the descheduler operator
    #[arg(long, default_value = "5.2", value_parser = ["5.1", "5.2", "5.3"])]
    descheduler: String,
    /// The API server's port; by default one that is free
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Let etcd wait for the disk, as on a real cluster
    #[arg(long)]
    fsync: bool,
    /// Leave the folder with all logs behind
    #[arg(long)]
    keep: bool,
    /// Stay up until Ctrl-C although there is no terminal
    #[arg(long, conflicts_with = "once")]
    stay: bool,
    /// Show what there is and end although there is a terminal
    #[arg(long)]
    once: bool,
    /// Let the autopilot show what it does, and check every step
    #[arg(long, conflicts_with = "output")]
    story: bool,
    /// How to print where it is
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

fn parse_pool(text: &str) -> Result<Pool, String> {
    let (name, nodes) = text.split_once('=').ok_or("write it as NAME=NODES, such as infra=2")?;
    let nodes = nodes.parse().map_err(|_| format!("{nodes:?} is not a number of nodes"))?;
    Ok(Pool { name: name.to_owned(), nodes, gpu: false })
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Ended> {
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
        in_turn: false,
    };
    let begun = Instant::now();
    let mut playground = unless_interrupted(Playground::start(&options, Progress::detect())).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let version = unless_interrupted(server_version(&playground)).await?;
    match arguments.output {
        Format::Json => {
            let about = json!({
                "address": playground.address(),
                "folder": playground.folder(),
                "kubeconfig": playground.kubeconfig(),
                "kubernetes": version,
                "scene": scene,
                "seconds": (seconds * 10.0).round() / 10.0,
            });
            writeln!(std::io::stdout().lock(), "{about:#}")?;
        }
        Format::Text => {
            let kubeconfig = playground.kubeconfig();
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nThe playground is up after {seconds:.1} s.\n")?;
            writeln!(out, "  API server  {} (Kubernetes {version})", playground.address())?;
            writeln!(out, "  kubeconfig  {}", kubeconfig.display())?;
            writeln!(out, "  scene       {}", scene.summary())?;
            writeln!(out, "\nTry:\n")?;
            for command in things_to_try(&playground) {
                writeln!(out, "  {command}")?;
            }
            writeln!(out)?;
        }
    }
    if arguments.story {
        unless_interrupted(story::tell(&mut playground, &scene.hco)).await?;
    }
    if stay {
        eprintln!("It stays up until Ctrl-C.");
        tokio::select! {
            () = asked_to_end() => {}
            trouble = playground.broken() => return Err(trouble.into()),
        }
        drop(playground);
        eprintln!(
            "\nIt is gone: no process, no port{}.",
            if arguments.keep { ", only the kept folder" } else { ", no file" }
        );
        return Ok(());
    }
    match arguments.output {
        Format::Json => Ok(()),
        Format::Text => unless_interrupted(show(&playground)).await,
    }
}

fn things_to_try(playground: &Playground) -> [String; 3] {
    let folder = playground.folder().display();
    [
        format!("{folder}/kubectl get nodes"),
        format!("{folder}/kubectl get machineconfigpools,hyperconvergeds --all-namespaces"),
        format!("{folder}/requests --user playground-admin"),
    ]
}

/// Without a terminal nobody can type: the three things are tried here, exactly as printed.
async fn show(playground: &Playground) -> Result<(), Trouble> {
    for command in things_to_try(playground) {
        say(&format!("$ {command}\n"))?;
        let status = tokio::process::Command::new("sh").args(["-c", &command]).kill_on_drop(true).status().await;
        say("\n")?;
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(Trouble::new(
                    format!("`{command}` ended with {status}"),
                    "this is a bug, please report it",
                ));
            }
            Err(error) => {
                return Err(Trouble::new(format!("`{command}` cannot be run"), "install a POSIX shell").from(error));
            }
        }
    }
    Ok(())
}

async fn server_version(playground: &Playground) -> Result<String, Trouble> {
    let info = playground.client().apiserver_version().await;
    let info =
        info.map_err(|error| Trouble::new("could not ask the API server for its version", "run again").from(error))?;
    Ok(info.git_version)
}

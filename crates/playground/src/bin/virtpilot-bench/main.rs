//! `make bench`: measures the operator and the playground, and prints a table and JSON.

mod advisor;
mod baseline;
mod catalogue;
mod churn;
mod churn_pack;
mod cluster_start;
mod crd_growth;
mod deletion;
mod drift;
mod established;
mod fleet;
mod fleet_jobs;
mod idle;
mod measure;
mod operator_process;
mod operator_start;
mod pack;
mod plan;

use clap::Parser;
use playground::{Playground, Progress, UserError, files};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures the operator and the playground.
#[derive(Parser)]
struct Arguments {
    /// How often a new cluster is started
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// How many drifts of the large pack are measured
    #[arg(long, default_value_t = 1_000)]
    drifts: usize,
    /// Seconds to measure the idle operator
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// How many additional CRDs are installed
    #[arg(long, default_value_t = 300)]
    crds: usize,
    /// How often 50 CRDs are removed and reinstalled
    #[arg(long, default_value_t = 20)]
    kinds_rounds: usize,
    /// Only this part
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// A large asset pack with its role, written by `cargo xtask gen-pack`
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
    /// The file for the results as JSON
    #[arg(long, default_value = "bench.json")]
    json: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// Managing the whole catalogue with everything switched on, and the large pack
    Packs,
    /// Plans for the large pack
    Plans,
    /// CRDs and nodes that are added and removed
    Kinds,
    /// Starting a new cluster
    Starts,
    /// Plans of the advisor
    Advisor,
    /// Machines of the fleet
    Fleet,
    /// Jobs of GitHub on machines of the fleet
    Jobs,
    /// Memory and polls of the fleet with thousands of machines
    FleetMany,
}

#[tokio::main]
async fn main() -> ExitCode {
    // Installing the provider a second time fails and is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), UserError> {
    Playground::prepare(None, Progress::detect()).await?;
    let is_wanted = |part: Only| arguments.only.is_none_or(|only| only == part);
    let mut measures = Vec::new();
    if is_wanted(Only::Packs) {
        measures.extend(pack::measure(arguments, None).await?);
        if let Some(folder) = &arguments.pack {
            measures.extend(pack::measure(arguments, Some(folder)).await?);
        }
    }
    if arguments.only == Some(Only::Plans)
        && let Some(folder) = &arguments.pack
    {
        measures.extend(pack::measure(arguments, Some(folder)).await?);
    }
    if is_wanted(Only::Kinds) {
        measures.extend(churn::measure(arguments).await?);
    }
    if is_wanted(Only::Starts) {
        measures.extend(cluster_start::measure(arguments).await?);
    }
    if is_wanted(Only::Advisor) {
        measures.extend(advisor::measure(arguments).await?);
    }
    if is_wanted(Only::Fleet) {
        measures.extend(fleet::measure(false).await?);
    }
    if arguments.only == Some(Only::FleetMany) {
        measures.extend(fleet::measure(true).await?);
    }
    if is_wanted(Only::Jobs) {
        measures.extend(fleet_jobs::measure().await?);
    }
    let json = serde_json::to_string_pretty(&measures).unwrap_or_default();
    files::write(&arguments.json, json)?;
    for line in measure::table(&measures) {
        println!("{line}");
    }
    println!("\nJSON: {}", arguments.json.display());
    let complaints: Vec<String> = measures.iter().filter_map(measure::Measure::complaint).collect();
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(UserError::new(
            format!("more than its limit: {}", complaints.join("; ")),
            "measure again on a machine that does nothing else; if it stays so, it is a defect",
        )),
    }
}

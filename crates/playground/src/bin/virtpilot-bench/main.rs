//! `make bench`: measures what this project promises, as a table and as JSON.

mod bare;
mod deletion;
mod drift;
mod growth;
mod idle;
mod measure;
mod pack;
mod start;
mod starts;
mod subject;

use clap::Parser;
use playground::{Playground, Progress, Trouble, trouble};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures what this project promises.
#[derive(Parser)]
struct Arguments {
    /// How often a clean cluster is started
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// How many drifts of the large pack are corrected
    #[arg(long, default_value_t = 1_000)]
    drifts: usize,
    /// How many seconds nothing happens
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// How many CRDs come to those there are
    #[arg(long, default_value_t = 300)]
    crds: usize,
    /// A large pack with its role, as `cargo xtask gen-pack` makes it
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
    /// Where the same figures are written as JSON
    #[arg(long, default_value = "bench.json")]
    json: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    // The only TLS provider of the tree; a second installation is refused and harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("error: {trouble}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Trouble> {
    Playground::prepare(None, Progress::detect()).await?;
    let mut measures = pack::measure(arguments, None).await?;
    if let Some(folder) = &arguments.pack {
        measures.extend(pack::measure(arguments, Some(folder)).await?);
    }
    measures.extend(starts::measure(arguments).await?);
    let json = serde_json::to_string_pretty(&measures).unwrap_or_default();
    std::fs::write(&arguments.json, json).map_err(|error| trouble::io("write", &arguments.json, error))?;
    print!("{}", measure::table(&measures));
    println!("\nas JSON in {}", arguments.json.display());
    Ok(())
}

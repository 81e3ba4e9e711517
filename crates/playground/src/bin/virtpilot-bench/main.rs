//! `make bench`: measures what this project promises, as a table and as JSON.

mod bare;
mod changing;
mod changing_pack;
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
    /// How often 50 kinds are removed and installed again
    #[arg(long, default_value_t = 20)]
    kinds_rounds: usize,
    /// Only this part
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// A large pack with its role, as `cargo xtask gen-pack` makes it
    #[arg(long, value_name = "FOLDER")]
    pack: Option<PathBuf>,
    /// Where the same figures are written as JSON
    #[arg(long, default_value = "bench.json")]
    json: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// Keeping a pack of two assets, and the large one
    Packs,
    /// Kinds and nodes that come and go
    Kinds,
    /// Starting a clean cluster
    Starts,
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
    let is_wanted = |part: Only| arguments.only.is_none_or(|only| only == part);
    let mut measures = Vec::new();
    if is_wanted(Only::Packs) {
        measures.extend(pack::measure(arguments, None).await?);
        if let Some(folder) = &arguments.pack {
            measures.extend(pack::measure(arguments, Some(folder)).await?);
        }
    }
    if is_wanted(Only::Kinds) {
        measures.extend(changing::measure(arguments).await?);
    }
    if is_wanted(Only::Starts) {
        measures.extend(starts::measure(arguments).await?);
    }
    let json = serde_json::to_string_pretty(&measures).unwrap_or_default();
    std::fs::write(&arguments.json, json).map_err(|error| trouble::io("write", &arguments.json, error))?;
    print!("{}", measure::table(&measures));
    println!("\nas JSON in {}", arguments.json.display());
    Ok(())
}

//! `make bench`: measures what this project promises, as a table and as JSON.

mod autopilot;
mod starts;

use clap::Parser;
use playground::{Playground, Progress, Trouble, trouble};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures what this project promises.
#[derive(Parser)]
struct Arguments {
    /// How often each thing is measured
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// How many seconds nothing happens
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// Where the same figures are written as JSON
    #[arg(long, default_value = "bench.json")]
    json: PathBuf,
}

/// One thing measured once or many times.
#[derive(Serialize)]
struct Measure {
    name: String,
    unit: &'static str,
    rounds: usize,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl Measure {
    fn of(name: &str, unit: &'static str, mut values: Vec<f64>) -> Measure {
        values.sort_by(f64::total_cmp);
        let at = |part: usize| {
            values.get((values.len() * part).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
        };
        Measure {
            name: name.to_owned(),
            unit,
            rounds: values.len(),
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max: at(100),
        }
    }
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
    let mut measures = autopilot::measure(arguments).await?;
    measures.extend(starts::measure(arguments).await?);
    let json = serde_json::to_string_pretty(&measures).unwrap_or_default();
    std::fs::write(&arguments.json, json).map_err(|error| trouble::io("write", &arguments.json, error))?;
    println!("{:<58} {:>6} {:>9} {:>9} {:>9} {:>9}", "", "rounds", "p50", "p90", "p99", "max");
    for Measure { name, unit, rounds, p50, p90, p99, max } in &measures {
        println!("{:<58} {rounds:>6} {p50:>9.2} {p90:>9.2} {p99:>9.2} {max:>9.2}", format!("{name}, {unit}"));
    }
    println!("\nas JSON in {}", arguments.json.display());
    Ok(())
}

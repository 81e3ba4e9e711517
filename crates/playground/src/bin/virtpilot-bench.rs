//! `make bench`: measures what this project promises, as a table and as JSON.

use clap::Parser;
use playground::{Options, Playground, Progress, Scene, Trouble, trouble};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Measures what this project promises.
#[derive(Parser)]
struct Arguments {
    /// How often each thing is measured
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Where the same figures are written as JSON
    #[arg(long, default_value = "bench.json")]
    json: PathBuf,
}

/// One thing measured many times, in seconds.
#[derive(Serialize)]
struct Measure {
    name: String,
    rounds: usize,
    p50: f64,
    p90: f64,
    max: f64,
}

impl Measure {
    fn of(name: &str, mut seconds: Vec<f64>) -> Measure {
        seconds.sort_by(f64::total_cmp);
        let at = |part: usize| {
            seconds.get((seconds.len() * part).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
        };
        Measure { name: name.to_owned(), rounds: seconds.len(), p50: at(50), p90: at(90), max: at(100) }
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
    let mut measures = Vec::new();
    for (name, scene, fsync) in [
        ("clean cluster, no scene", None, true),
        ("clean cluster, scene small", Some("small"), true),
        ("clean cluster, scene big", Some("big"), true),
        ("as in tests: scene small, no fsync", Some("small"), false),
    ] {
        let scene = scene.map(Scene::preset).transpose()?;
        let options = Options { scene, fsync, port: None, keep: false, in_turn: false };
        let mut seconds = Vec::new();
        for round in 0..arguments.rounds {
            eprint!("\r{name}: {} of {}   ", round + 1, arguments.rounds);
            let begun = Instant::now();
            let playground = Playground::start(&options, Progress::Silent).await?;
            seconds.push(begun.elapsed().as_secs_f64());
            drop(playground);
        }
        eprintln!();
        measures.push(Measure::of(name, seconds));
    }
    let json = serde_json::to_string_pretty(&measures).unwrap_or_default();
    std::fs::write(&arguments.json, json).map_err(|error| trouble::io("write", &arguments.json, error))?;
    println!("{:<36} {:>6} {:>8} {:>8} {:>8}", "seconds to", "rounds", "p50", "p90", "max");
    for Measure { name, rounds, p50, p90, max } in &measures {
        println!("{name:<36} {rounds:>6} {p50:>8.2} {p90:>8.2} {max:>8.2}");
    }
    println!("\nas JSON in {}", arguments.json.display());
    Ok(())
}

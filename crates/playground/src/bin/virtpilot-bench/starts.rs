//! How long a clean cluster takes.

use super::Arguments;
use super::measure::Measure;
use playground::{Options, Playground, Progress, Scene, Trouble};
use std::time::Instant;

pub(super) async fn measure(arguments: &Arguments) -> Result<Vec<Measure>, Trouble> {
    let mut measures = Vec::new();
    for (name, scene, fsync) in [
        ("clean cluster, no scene", None, true),
        ("clean cluster, scene small", Some("small"), true),
        ("clean cluster, scene big", Some("big"), true),
        ("clean cluster as in tests: small, no fsync", Some("small"), false),
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
        measures.push(Measure::of(name, "s", seconds));
    }
    Ok(measures)
}

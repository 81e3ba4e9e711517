//! Measures how long a new cluster takes to start.

use super::Arguments;
use super::measure::Measure;
use playground::{Options, Playground, Progress, Scene, UserError};
use std::time::Instant;

pub(super) async fn measure(arguments: &Arguments) -> Result<Vec<Measure>, UserError> {
    let mut measures = Vec::new();
    for (name, scene, fsync) in [
        ("new cluster, no scene", None, true),
        ("new cluster, scene small", Some("small"), true),
        ("new cluster, scene big", Some("big"), true),
        ("new cluster as in tests: small, no fsync", Some("small"), false),
    ] {
        let scene = scene.map(Scene::preset).transpose()?;
        let options = Options { fsync, ..Options::for_bench(scene) };
        let mut seconds = Vec::new();
        for round in 0..arguments.rounds {
            eprint!("\r{name}: {} of {}   ", round + 1, arguments.rounds);
            let started = Instant::now();
            let playground = Playground::start(&options, Progress::Silent).await?;
            seconds.push(started.elapsed().as_secs_f64());
            drop(playground);
        }
        eprintln!();
        measures.push(Measure::of(name, "s", seconds));
    }
    Ok(measures)
}

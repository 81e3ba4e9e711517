//! Integration tests of the playground, on a real control plane.

// Clippy allows these in test functions only, not in their helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_input;
mod crds;
mod faults;
mod isolation;
mod marked_process;
mod process_cleanup;
mod request_counter;
mod scenes;
mod terminal;

use playground::{Options, Playground, Progress, Scene};

/// A new cluster with a preset scene.
async fn start(scene: &str) -> Playground {
    start_scene(Scene::preset(scene).unwrap()).await
}

/// A new cluster with this scene.
async fn start_scene(scene: Scene) -> Playground {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Playground::start(&Options::for_test(scene), Progress::Silent).await.unwrap_or_else(|error| panic!("{error}"))
}

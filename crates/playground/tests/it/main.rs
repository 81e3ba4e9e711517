//! What the playground promises, on a real control plane.

// Clippy takes only functions marked as tests for tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_input;
mod counter;
mod crds;
mod death;
mod faults;
mod isolation;
mod marked;
mod scenes;
mod terminal;

use playground::{Options, Playground, Progress, Scene};

/// A clean cluster with a preset's scene.
async fn start(scene: &str) -> Playground {
    start_scene(Scene::preset(scene).unwrap()).await
}

/// A clean cluster with this scene.
async fn start_scene(scene: Scene) -> Playground {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Playground::start(&Options::for_test(scene), Progress::Silent).await.unwrap_or_else(|trouble| panic!("{trouble}"))
}

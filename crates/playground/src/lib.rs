//! A real control plane on this machine that looks like a small OpenShift: for the demo, the tests and the benches.

pub mod abandoned;
pub mod audit;
pub mod binaries;
pub mod cache;
pub mod certificates;
pub mod components;
pub mod control_plane;
pub mod crds;
pub mod deployment;
pub mod fault;
mod go;
mod kubeconfig;
mod playground;
mod port;
pub mod process;
pub mod progress;
pub mod run_folder;
pub mod scene;
pub mod seed;
pub mod service_account;
pub mod tools;
pub mod trouble;
mod turn;

pub use playground::{Options, Playground};
pub use progress::Progress;
pub use scene::Scene;
pub use trouble::Trouble;

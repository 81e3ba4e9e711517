//! A real Kubernetes control plane on this machine, populated like a small OpenShift cluster, for the demo, tests and benchmarks.

pub mod audit;
pub mod binaries;
pub mod cache;
pub mod certificates;
pub mod components;
pub mod control_plane;
pub mod crds;
pub mod deployment;
pub mod fault;
pub mod files;
mod go;
mod kubeconfig;
pub mod machine_config_operator;
pub mod owned_folder;
pub mod packaging;
mod playground;
pub mod poll;
mod port;
pub mod process;
mod programs;
pub mod progress;
pub mod pseudo_random;
pub mod run_folder;
pub mod scene;
pub mod seed;
pub mod service_account;
mod slot;
pub mod text_table;
pub mod tools;
pub mod user_error;

pub use machine_config_operator::MachineConfigOperator;
pub use mco_stand_in::{Timing, control};
pub use playground::{Options, Playground};
pub use progress::Progress;
pub use scene::Scene;
pub use user_error::UserError;

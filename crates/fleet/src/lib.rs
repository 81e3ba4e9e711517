//! The fleet: one machine for each claim, on a hypervisor outside of the cluster, never lost and never someone else's.

pub mod backoff;
pub mod blueprint;
pub mod bootstrap;
pub mod cloud_init;
pub mod cluster;
pub mod conditions;
pub mod connection;
pub mod convert;
pub mod core;
pub mod explain;
pub mod forge;
pub mod hypervisor;
pub mod identity;
pub mod ids;
pub mod inbox;
pub mod jobs;
pub mod machine;
mod notice;
pub mod object;
pub mod orphans;
pub mod outside;
pub mod placement;
pub mod pool;
pub mod record;
#[cfg(test)]
mod simulation;
pub mod tags;
pub mod template;
pub mod versions;

pub use core::{Concurrency, Config, Core};
pub use identity::IDENTITY;
pub use notice::{Notice, Weight};

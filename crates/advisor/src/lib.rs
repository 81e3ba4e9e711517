//! The advisor: a plan that a person reads and approves, applied exactly as approved.

pub mod before;
pub mod changes;
pub mod conditions;
pub mod core;
pub mod health;
pub mod identity;
pub mod judge;
pub mod memory;
mod notice;
pub mod overrides;
pub mod plan;
pub mod situation;
pub mod status;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod testing;
mod versions;
pub mod wanted;

pub use core::{Config, Core};
pub use identity::IDENTITY;
pub use judge::{Judgement, judge};
pub use notice::Notice;

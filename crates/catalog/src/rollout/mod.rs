//! What a change of a node's configuration does to the nodes of its pools, judged by content.

mod contents;
mod contribution;
mod disruption;
mod estimate;
mod kubelet;
mod nodes;
mod readings;

pub use contents::Contents;
pub use contribution::Contribution;
pub use disruption::DisruptionPolicy;
pub use estimate::{Configuration, PoolChange, pool_change};
pub use nodes::{Estimate, PoolEstimate, pool_of, restarts_of};
pub use readings::{Change, Readings, Unread};

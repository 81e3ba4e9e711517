//! Facts about a cluster in, desired objects out.

pub mod applies;
pub mod asset;
pub mod catalog;
pub mod condition;
pub mod crd;
pub mod facts;
pub mod fault;
pub mod feature;
pub mod files;
pub mod hardware;
mod load;
pub mod need;
pub mod node;
pub mod pool;
pub mod query;
pub mod render;
mod requirement;
pub mod source;
mod strict;
mod template;
#[cfg(test)]
mod test_pack;
pub mod tombstone;
pub mod topology;
pub mod world;
mod yaml;

pub use applies::{Applicability, Unmet, applies};
pub use asset::{Asset, Install, Prune, Read};
pub use catalog::Catalog;
pub use condition::Condition;
pub use facts::Facts;
pub use fault::Fault;
pub use feature::{Feature, Framework, Maturity};
pub use files::Files;
pub use hardware::Hardware;
pub use need::Need;
pub use node::Node;
pub use pool::Pool;
pub use query::{Answer, Query};
pub use render::{Rendered, render};
pub use source::source;
pub use tombstone::Tombstone;
pub use topology::Topology;
pub use world::{Part, World};

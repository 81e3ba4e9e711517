//! Facts about a cluster in, desired objects out.

pub mod applies;
mod cluster;
mod document;
mod pack;
pub mod render;
mod resolve;
pub mod role;
pub mod rollout;
mod template;
mod yaml;

pub use applies::{Applicability, Unmet, applies};
pub use cluster::facts::Facts;
pub use cluster::hardware::Hardware;
pub use cluster::need::Need;
pub use cluster::node::Node;
pub use cluster::pool::{Pool, ROLE};
pub use cluster::query::{Answer, Query};
pub use cluster::selector::{Labels, Selector};
pub use cluster::state::{ClusterState, FACT_SOURCES, FactSource, Part};
pub use cluster::topology::Topology;
pub use cluster::{crd, facts, hardware, need, node, pool, query, topology};
pub use document::{Document, Edited};
pub use pack::asset::{Asset, DocumentInFile, Install, Prune, Read};
pub use pack::catalog::Catalog;
pub use pack::condition::Condition;
pub use pack::fault::Fault;
pub use pack::feature::{Feature, Framework, Maturity};
pub use pack::files::Files;
pub use pack::notes::Notes;
pub use pack::summary::{Summary, summaries};
pub use pack::tombstone::Tombstone;
pub use pack::{asset, catalog, condition, fault, feature, files, summary, tombstone};
pub use render::{Rendered, Renderer, render};
pub use resolve::{Resolved, resolve};
pub use role::{role, role_objects};
pub use yaml::yaml_text;

//! The cluster an asset is rendered for: the facts about it, what it serves, and what is asked of it.

pub mod crd;
pub mod facts;
pub mod hardware;
pub mod need;
pub mod node;
pub mod pool;
pub mod query;
pub mod state;
pub mod topology;

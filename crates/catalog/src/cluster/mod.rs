//! The cluster that assets are rendered for: facts about it, the kinds it serves, and queries to it.

pub mod crd;
pub mod facts;
pub mod governed;
pub mod hardware;
pub mod need;
pub mod node;
pub mod pool;
pub mod query;
pub mod selector;
pub mod state;
pub mod topology;

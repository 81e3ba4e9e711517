//! Runs the core against a model of the API server: people act, requests are carried out, and every write is checked.

pub(crate) mod bed;
mod nodes;
pub(crate) mod pack;
pub(crate) mod promises;

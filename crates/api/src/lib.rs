//! What users write: the names, keys and kinds that virtpilot honours.

pub mod hco;

//! YAML as kubectl reads it and as Go writes it.

pub mod node;
pub mod read;
pub mod resolve;
pub mod scalar;
pub mod write;

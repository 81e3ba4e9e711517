//! YAML, read as kubectl does and written as Go does.

pub mod node;
pub mod read;
pub mod resolve;
pub mod scalar;
pub mod write;

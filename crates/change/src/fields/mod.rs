//! Fields of an object: how they are addressed, and which field manager owns which.

pub mod field_set;
pub mod list_repair;
pub mod managed_fields;
pub mod pattern;
pub mod pointer;
pub mod redact;
#[cfg(test)]
mod tests;

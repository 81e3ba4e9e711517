//! Fields of an object: how they are addressed, and which field manager owns which.

pub mod atomic;
mod coverage;
pub mod entry;
pub mod field_set;
mod list_items;
pub mod list_repair;
pub mod managed_fields;
pub mod pattern;
pub mod pointer;
pub mod redact;
#[cfg(test)]
mod tests;

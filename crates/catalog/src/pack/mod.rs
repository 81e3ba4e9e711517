//! The asset pack: its files, its assets and features, and its faults.

mod annotations;
pub mod asset;
pub mod catalog;
pub mod condition;
mod documents;
pub mod fault;
pub mod feature;
pub mod files;
pub(crate) mod load;
pub mod notes;
mod requirement;
pub mod setting;
mod source;
pub(crate) mod strict;
pub mod summary;
#[cfg(test)]
pub(crate) mod test_pack;
pub mod tombstone;

//! The asset pack: its files, what they declare, and what is wrong with them.

pub mod asset;
pub mod catalog;
pub mod condition;
pub mod fault;
pub mod feature;
pub mod files;
pub(crate) mod load;
mod requirement;
pub mod source;
mod strict;
#[cfg(test)]
pub(crate) mod test_pack;
pub mod tombstone;

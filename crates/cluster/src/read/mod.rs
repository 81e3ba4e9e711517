//! Reads: nothing here needs a permit.

pub mod about;
pub mod discovery;
pub mod list;
pub mod live;
pub(crate) mod pages;
pub(crate) mod pod;
pub mod preview;
pub mod query;
pub mod review;

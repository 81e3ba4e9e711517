//! Writes: platform objects only through [`act`], and each with a permit.

pub mod act;
pub mod backup;
pub mod event;
pub mod lease;
pub mod permit;

//! Adopting an object and giving it up again: the backup taken before, and the patch that releases it.

pub mod backup;
pub mod handback;

//! One object: its key, its desired content, its live metadata and its digest.

pub mod desired;
pub mod digest;
pub mod key;
pub mod live;

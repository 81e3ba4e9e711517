//! One write: what is sent, under which names, and when it is tried again.

pub mod backoff;
pub mod effect;
pub mod identity;
pub mod now;

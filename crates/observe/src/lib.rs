//! What a core knows of a cluster: what is served, watched and asked, and when to ask again.

pub mod discovery;
pub mod queries;
pub mod surroundings;
pub mod timers;
pub mod watches;

pub use discovery::{CrdChange, Discovery};
pub use queries::{Queries, target_of};
pub use surroundings::Surroundings;
pub use timers::Timers;
pub use watches::Watches;

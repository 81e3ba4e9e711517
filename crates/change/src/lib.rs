//! One object: what we want of it, what users override, how it differs, and the write that follows.

pub mod allow;
pub mod backup;
#[cfg(test)]
mod corpus;
pub mod desired;
mod difference;
pub mod digest;
pub mod field_set;
#[cfg(test)]
mod fuzz;
mod guards;
pub mod handback;
pub mod impact;
pub mod list_repair;
pub mod live;
pub mod managed_fields;
mod masks;
pub mod object;
mod operate;
pub mod overrides;
pub mod patch;
pub mod pattern;
pub mod pointer;
pub mod reason;
pub mod steering;
mod strict;

pub use allow::Openings;
pub use desired::Desired;
pub use digest::Digest;
pub use field_set::{Entry, FieldSet};
pub use impact::Impact;
pub use live::Live;
pub use managed_fields::{Claim, ManagedFields};
pub use object::{Key, Kind};
pub use overrides::Overrides;
pub use reason::Reason;
pub use steering::{Mode, Pause, Steering};

//! One object: what we want of it, what users override, how it differs, and the write that follows.

pub mod allow;
pub mod backoff;
pub mod backup;
pub mod consent;
pub mod content;
#[cfg(test)]
mod corpus;
pub mod desired;
mod difference;
pub mod digest;
pub mod effect;
pub mod field_set;
#[cfg(test)]
mod fuzz;
pub mod gate;
mod guards;
pub mod handback;
pub mod identity;
pub mod impact;
pub mod list_repair;
pub mod live;
pub mod managed_fields;
mod masks;
pub mod now;
pub mod object;
mod operate;
pub mod overrides;
pub mod patch;
pub mod pattern;
pub mod pointer;
pub mod reason;
pub mod restarts;
pub mod steering;
mod strict;

pub use allow::Openings;
pub use backoff::Backoff;
pub use consent::Consent;
pub use content::{Change, Changes};
pub use desired::Desired;
pub use digest::Digest;
pub use effect::{Effect, Precondition};
pub use field_set::{Entry, FieldSet};
pub use gate::{Gate, gate};
pub use identity::Identity;
pub use impact::Impact;
pub use live::Live;
pub use managed_fields::{Claim, ManagedFields};
pub use now::{Moment, Now};
pub use object::{Key, Kind};
pub use overrides::Overrides;
pub use reason::{LeftBehind, Planned, Reason};
pub use restarts::Restarts;
pub use steering::{Mode, Pause, Steering};

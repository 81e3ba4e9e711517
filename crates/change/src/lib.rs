//! One object: what we want of it, what users override, how it differs, and the write that follows.

pub mod digest;
pub mod field_set;
pub mod impact;
pub mod list_repair;
pub mod live;
pub mod object;
pub mod overrides;
pub mod patch;
pub mod pointer;
pub mod reason;
mod strict;

pub use digest::Digest;
pub use field_set::{Entry, FieldSet};
pub use impact::Impact;
pub use live::Live;
pub use object::{Key, Kind};
pub use overrides::{Mode, Overrides};
pub use reason::Reason;

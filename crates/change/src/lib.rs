//! One object: its desired state, the overrides of its users, its drift, and the write that follows.

pub mod content;
mod fields;
mod handover;
pub mod impact;
mod object;
pub mod overrides;
pub mod reason;

pub use fields::field_set::{Entry, FieldSet};
pub use fields::managed_fields::{Claim, ManagedFields};
pub use fields::{field_set, list_repair, managed_fields, pattern, pointer};
pub use handover::{backup, handback};
pub use impact::Impact;
pub use object::desired::Desired;
pub use object::digest::Digest;
pub use object::key::{Key, Kind};
pub use object::live::Live;
pub use object::{desired, digest, live};
pub use overrides::Overrides;
pub use overrides::allow::PatchableKinds;
pub use overrides::steering::{Mode, Pause, Steering};
pub use overrides::{allow, patch, steering};
pub use reason::Reason;

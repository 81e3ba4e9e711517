//! One object: its desired state, the overrides of its users, its drift, and the write that follows.

pub mod content;
mod fields;
mod handover;
mod object;
pub mod overrides;
pub mod reason;
mod restart;
mod write;

pub use content::{Change, Changes};
pub use fields::entry::Entry;
pub use fields::field_set::FieldSet;
pub use fields::managed_fields::{Claim, ManagedFields};
pub use fields::{atomic, entry, field_set, list_repair, managed_fields, pattern, pointer, redact};
pub use handover::{backup, handback};
pub use object::desired::Desired;
pub use object::digest::Digest;
pub use object::key::{Key, Kind};
pub use object::live::Live;
pub use object::{desired, digest, live};
pub use overrides::Overrides;
pub use overrides::allow::PatchableKinds;
pub use overrides::steering::{Mode, Pause, Steering};
pub use overrides::{allow, patch, steering};
pub use reason::{LeftBehind, Planned, Reason};
pub use restart::approval::Approval;
pub use restart::consent::Consent;
pub use restart::gate::{Gate, gate};
pub use restart::impact::Impact;
pub use restart::restarts::Restarts;
pub use restart::window::{Maintenance, Window};
pub use restart::{consent, gate, impact, restarts};
pub use write::backoff::Backoff;
pub use write::effect::{Effect, Manifest, Precondition};
pub use write::identity::Identity;
pub use write::now::{Moment, Now};
pub use write::{effect, now};

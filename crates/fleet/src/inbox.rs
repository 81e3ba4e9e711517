//! What others bring to the fleet without being asked: webhooks that were checked, and what guests said at the bootstrap endpoint.

use crate::bootstrap::Notice;
use crate::jobs::Observation;
use crate::object::Name;
use std::collections::BTreeSet;

/// Something that was received. A server checks it first; the core only hears what is genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A webhook that [`crate::jobs::webhook::Receiver`] has accepted.
    Job(Box<Signed>),
    /// What a request of a guest means for others, as [`crate::bootstrap::Registry`] says.
    Guest(Notice),
}

/// What a webhook says, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// What it says.
    pub observation: Observation,
    /// The pools whose secret it was signed with: it is taken for no others.
    pub pools: BTreeSet<Name>,
}

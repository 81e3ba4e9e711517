//! What others bring to the fleet without being asked: webhooks that were checked, and what guests said at the bootstrap endpoint.

use crate::bootstrap::Notice;
use crate::jobs::Observation;

/// Something that was received. A server checks it first; the core only hears what is genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A webhook that [`crate::jobs::webhook::Receiver`] has accepted.
    Job(Box<Observation>),
    /// What a request of a guest means for others, as [`crate::bootstrap::Registry`] says.
    Guest(Notice),
}

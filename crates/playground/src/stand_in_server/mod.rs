//! What the HTTPS servers of all stand-ins have in common: their certificate, and what they were asked.

mod certificate;
mod record;

pub(crate) use certificate::Certificate;
pub use record::Line;
pub(crate) use record::Records;

//! What a CI platform has to be able to do, whichever it is.

use fleet::forge::{Answer, Ask, Failure};
use futures::future::BoxFuture;

/// A CI platform. What it cannot do, such as scale sets, is refused with [`Failure::Permanent`].
pub trait CarryOut: Send + Sync {
    /// Carries out one request. It may be dropped at any moment: what was sent may then have been carried out.
    fn carry_out<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// Ends what this process has open there, such as sessions, so that a successor need not wait for their expiry.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

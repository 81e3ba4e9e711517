//! How a product carries out what its core asks for elsewhere than at the API server.

use protocol::Never;

/// Answers requests of a core; each is a task of its own, which a stop of the process may end at any moment.
pub trait Elsewhere<R, A>: Send + Sync + 'static {
    /// Carries out one request.
    fn carry_out(&self, request: R) -> impl Future<Output = A> + Send + 'static;
}

/// For a core that asks nobody but the API server.
#[derive(Debug, Clone, Copy)]
pub struct Nowhere;

impl Elsewhere<Never, Never> for Nowhere {
    fn carry_out(&self, request: Never) -> impl Future<Output = Never> + Send + 'static {
        std::future::ready(request)
    }
}

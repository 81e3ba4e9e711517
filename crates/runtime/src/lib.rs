//! The hands all products share: they carry out what a core asks for and decide nothing.
//!
//! [`run()`] and [`evaluate`] drive a [`protocol::Core`]. The publisher, leading, probes, traces and the stop signal
//! are also usable on their own, for products that are ordinary controllers.

pub mod access;
mod batch;
pub mod bounded;
pub mod clock;
pub mod elsewhere;
pub mod health;
mod http_server;
pub mod journal;
pub mod lead;
pub mod once;
pub mod publisher;
mod reads;
pub mod run;
pub mod stop;
#[cfg(test)]
mod test_server;
pub mod tls;
pub mod traces;
mod watches;
mod workers;

pub use clock::Clock;
pub use elsewhere::{Elsewhere, Nowhere};
pub use journal::{Discard, Journal};
pub use lead::{Probes, lead};
pub use once::{Unlisted, evaluate, evaluate_with};
pub use publisher::EventPublisher;
pub use run::{Hands, Question, run, run_with};
pub use stop::Stop;

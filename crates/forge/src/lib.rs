//! Clients for CI platforms: carries out what the fleet asks of GitHub and GitLab, and decides nothing.

mod exchange;
mod gate;
pub mod github;
pub mod gitlab;
mod hands;
mod provider;
mod settings;
mod tls;
mod transport;

pub use exchange::{Exchange, Report, Status, TRACE_TARGET};
pub use hands::{Hands, Link};
pub use provider::CarryOut;
pub use settings::{Credentials, Limits, Secret, Settings, Tls};

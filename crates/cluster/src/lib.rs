//! The Kubernetes API: what there is, what changes, and the one place that writes.

pub mod act;
pub mod answer;
pub mod backup;
pub mod connect;
pub mod event;
pub mod facts;
pub mod kinds;
pub mod lease;
pub mod list;
pub mod live;
pub mod permit;
pub mod request;
pub mod server;
pub mod watch;

pub use act::{Act, Acted};
pub use connect::connect;
pub use kinds::Kinds;
pub use permit::Permit;
pub use server::{Patience, Server};

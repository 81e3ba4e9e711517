//! The Kubernetes API: reads, watches, and the only writer. It knows no product: names come from a [`change::Identity`].

pub mod attempts;
pub mod connect;
pub mod kubeconfig;
pub mod other_server;
mod proxy;
pub mod read;
pub mod request;
pub mod server;
pub mod trace;
pub mod watch;
pub mod write;

pub use attempts::Attempts;
pub use connect::connect;
pub use kubeconfig::KubeconfigContext;
pub use other_server::OtherServer;
pub use read::{about, discovery, list, live, preview, query, review};
pub use request::Failure;
pub use server::{Server, Timeouts};
pub use watch::{Report, Watch};
pub use write::permit::Permit;
pub use write::{act, backup, event, lease, permit};

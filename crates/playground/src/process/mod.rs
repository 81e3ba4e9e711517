//! Child processes that never outlive this process, even if it is killed.

mod handle;
mod protocol;
mod supervisor;
mod tether;

pub(crate) use handle::playground_program;
pub use handle::{SupervisorHandle, run_to_end};
pub use protocol::{Output, Report, Start};
pub use supervisor::supervise;
pub use tether::tether;

//! Child processes that end with us, however we end.

mod family;
mod protocol;
mod supervisor;
mod tether;

pub use family::{Family, run_to_end};
pub use protocol::{Output, Report, Start};
pub use supervisor::supervise;
pub use tether::tether;

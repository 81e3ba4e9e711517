//! Machines of hypervisors: carries out what the fleet asks of Proxmox VE and of KubeVirt, and decides nothing.

mod exchange;
mod gate;
mod hands;
mod iso;
pub mod kubevirt;
mod provider;
pub mod proxmox;
mod seed;
mod settings;

pub use exchange::{Exchange, Report, Status, TRACE_TARGET};
pub use gate::Gate;
pub use hands::{Hands, Link};
pub use provider::{CarryOut, Provider};
pub use settings::{Credentials, Limits, Scope, Secret, Settings, Tls};

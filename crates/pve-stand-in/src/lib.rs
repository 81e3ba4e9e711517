//! A stand-in of the API of a Proxmox VE cluster: a state machine without I/O that answers as the real server does.
//!
//! [`StandIn::handle`] carries out one [`Request`] at a moment and returns what the client gets. Tasks take time ([`Timing`]): they go on
//! when a later moment is given, by a request or by [`StandIn::advance`]. What a test does to the cluster behind the API (a guest that
//! powers itself off, a node that is down, an answer that is lost) are methods of [`StandIn`] and [`Fault`]s.
//!
//! # What a client has to know, and what the stand-in therefore does like the real server
//!
//! - A clone exists from its first moment, but without name, description and pool: its configuration is only `lock: clone`. Name and
//!   description appear together while it is still locked. The pool, and the move to another node, come at the very end. A token
//!   whose rights come from a pool does not see the clone before that: for it, the clone is absent from lists and a 403 otherwise.
//! - `cluster/resources` shows what was true at the last round of the status daemon ([`Timing::statistics`]): a new VM is `unknown` and has
//!   no name, and a new VM with a used id may for a moment have the name of its predecessor.
//! - A VM that does not exist is a 500 for somebody with rights on `/vms`, and a 403 for everybody else.
//! - Nearly every write only starts a task; what went wrong is in its exit status, and sometimes only in its log.
//! - The end of a VM is also the end of its place in a pool and of all privileges on its path.
//!
//! # Where it differs from the real server
//!
//! - There are no machines and no disks: a guest boots and answers after a time, sizes are only numbers.
//! - There are no containers, snapshots, backups, firewalls, HA resources, realms other than passwords, groups, and no two-factor login.
//! - Roles are sets of privileges that are given directly; nothing in the API changes users, tokens or permissions.
//! - Only the parameters in [`ROUTES`] are known; others are refused like misspelt ones. Values of a configuration are checked as far as
//!   machines of a fleet use them.
//! - Parameters are verified before privileges; the real server does it the other way round.
//! - A digest of a configuration is the beginning of a SHA-256, not a SHA-1.

mod access;
mod acl;
mod body;
mod calls;
mod config;
mod control;
mod disks;
mod effects;
mod fault;
mod node;
mod property;
mod random;
mod request;
mod response;
mod route;
mod setup;
mod stand_in;
mod statistics;
mod storage;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod timing;
mod vm;

pub use acl::{ALL_PRIVILEGES, FLEET_PRIVILEGES};
pub use control::{Deed, History};
pub use fault::{Fault, FaultEffect, Reply};
pub use node::Node;
pub use request::{Credentials, File, Method, Request};
pub use response::Response;
pub use route::{Kind, Param, Route};
pub use setup::{NodeSetup, Setup, StorageSetup, TemplateSetup, TokenSetup, UserSetup};
pub use stand_in::StandIn;
pub use storage::{Storage, StorageKind, Volume};
pub use table::ROUTES;
pub use task::Task;
pub use timing::Timing;
pub use vm::{Guest, Outcome, Run, Vm};

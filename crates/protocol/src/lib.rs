//! What a pure core is told and what it asks for: events, commands, and the types both sides share.

pub mod command;
pub mod core;
pub mod election;
pub mod event;
pub mod kinds;
pub mod watch;
pub mod write;

pub use command::{Command, Search};
pub use core::{Core, Never};
pub use event::{Discovered, Event};
pub use kinds::{Groups, Kinds, Served};
pub use watch::{Body, Content, WatchEvent, WatchTarget};
pub use write::{Backup, Write, WriteError, Written};

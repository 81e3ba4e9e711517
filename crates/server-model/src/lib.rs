//! A model of the API server without I/O, for simulations: objects, owners of fields, server-side apply, discovery and watches. Where it stands
//! for facts about a real server, tests of the autopilot check them.

#![expect(clippy::expect_used, clippy::panic, reason = "what the model cannot follow is a mistake of a test")]

pub mod fields;
pub mod random;
pub mod server;
pub mod serving;
pub mod stored;
pub mod watching;

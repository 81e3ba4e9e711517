//! Keeps the platform's objects: watches, decides, writes, tells.

mod engine;
mod item;
mod journal;
pub(crate) mod platform;

pub(crate) use engine::{Settings, run};

//! Keeps the platform's objects: watches, decides, writes, tells.

mod asking;
mod deletions;
pub(crate) mod discovery;
mod engine;
pub(crate) mod item;
mod journal;
mod kinds;
mod leaving;
mod looks;
mod missing;
mod places;
pub(crate) mod platform;
mod questions;
mod readings;
mod rendering;
mod teller;
mod waiting;
mod world;
mod writing;

pub(crate) use engine::{Settings, run};

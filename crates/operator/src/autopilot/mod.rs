//! Keeps the platform's objects: watches, decides, writes, tells.

mod deletions;
mod engine;
pub(crate) mod item;
mod journal;
mod leaving;
mod looks;
mod places;
pub(crate) mod platform;
mod questions;
mod readings;
mod teller;
mod waiting;
mod writing;

pub(crate) use engine::{Settings, run};

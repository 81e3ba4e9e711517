//! Jobs of a CI platform: a runner for every queued job, and no job forgotten.
//!
//! Webhooks, messages of scale sets and polls are [`Observation`]s of the same jobs. A [`table::Table`] joins them, so that lost, late,
//! repeated and reordered ones lead to the same state. What is decided follows from that state each time: nothing is counted up or down.

pub mod assign;
pub mod budget;
pub mod chronicle;
pub mod demand;
pub mod dispatch;
pub mod exchange;
pub mod explain;
pub mod fair;
pub mod figures;
mod hmac;
pub mod job;
pub mod look_ups;
pub mod milestones;
pub mod orphan_runners;
mod payload;
pub mod published;
pub mod redelivery;
pub mod runners;
pub mod settings;
#[cfg(test)]
mod simulation;
pub mod story;
pub mod table;
pub mod twins;
pub mod webhook;

pub use dispatch::Dispatch;
pub use exchange::{Ask, Decision, Event, Objects, Order};
pub use job::{Facts, JobKey, Observation, Repository, Source, State};

//! A stand-in of GitLab's API for runners and their jobs: a state machine without I/O that answers as the real server does.
//!
//! [`StandIn::handle`] carries out one [`Request`] at a moment. What people and machines do behind the API are methods of [`StandIn`]:
//! [`StandIn::push_job`], [`StandIn::runner_asks`], [`StandIn::finish`]; [`StandIn::take_events`] has what webhooks send. What goes wrong are [`Fault`]s.
//!
//! # What a client has to know, and what the stand-in therefore does like the real server
//!
//! - A description of a runner is no name: any number of runners have the same.
//! - The token of a runner is shown once, when it is created.
//! - A runner that has a job is deleted without a question. Its job runs on until GitLab gives it up.
//! - A paused runner gets no job, and keeps the one that it has.
//! - A job that is tried again is another job. One without tags goes to runners that run untagged jobs.
//! - The jobs of a runner are those of projects that the asker sees.
//! - Lists of runners have no tags, and are read by numbers of pages, which shift while runners come and go. Jobs of a project are read by a
//!   key.
//! - A token lacks a scope: 403 with the scopes that would do. It lacks a role: 403, or 404 where it sees nothing at all.
//!
//! # Where it differs from the real server
//!
//! - There are no pipelines and no hierarchy of rights: a token has a role in a group or project by its path, and in what is below.
//! - Offset pages are not limited to 50,000 entries.

mod answer;
mod calls;
mod fault;
mod jobs;
mod lists;
mod request;
mod runner_calls;
mod setup;
mod stand_in;
#[cfg(test)]
mod tests;

pub use answer::Response;
pub use fault::{Fault, FaultEffect, Reply};
pub use request::{Method, Request};
pub use setup::{Limits, ProjectSetup, Setup, TokenSetup};
pub use stand_in::{Job, Owner, Runner, StandIn};

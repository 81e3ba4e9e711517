//! A stand-in of GitHub's API for self-hosted runners: a state machine without I/O that answers as the real server does.
//!
//! [`StandIn::handle`] carries out one [`Request`] at a moment and returns what the client gets. Jobs, runners and webhooks go on when a
//! later moment is given, by a request or by [`StandIn::tick`], which also returns the webhooks that are to be sent. What people and
//! machines do behind the API ([`StandIn::push_job`], [`StandIn::runner_online`], [`StandIn::runner_lost`] ...) are methods of
//! [`StandIn`]; what goes wrong are [`Fault`]s, [`WebhookFault`]s and [`WebhookChaos`].
//!
//! # What a client has to know, and what the stand-in therefore does like the real server
//!
//! - A job goes to any online runner whose labels contain those of the job, whoever started that runner and for which job.
//! - A runner with a JIT config has exactly the labels of the request: `self-hosted` and the system are not added.
//! - A runner exists from its JIT config on, offline. Its name stays taken until it ran its job, was deleted, or was offline for a day.
//! - A busy runner cannot be deleted. A machine that dies keeps its runner busy until GitHub gives it up, and the job fails only then.
//! - A re-run has the id of its run and another attempt, and its jobs have other ids.
//! - An answer with 304 costs no budget. A secondary limit is a 403 or 429 with `Retry-After`, while the budget is far from empty.
//! - A message of a scale set comes again until it is deleted; what was in messages of a session that ended is in the statistics of
//!   the next one.
//! - A label of an existing scale set cannot be changed: the change is accepted and ignored.
//!
//! # Where it differs from the real server
//!
//! - There are no workflows: jobs are pushed, last a given time, and end as they were told to.
//! - The protocol between a runner and GitHub is not public; a program in a machine uses three calls below `/_stand-in/runners` instead.
//! - Permissions are those that runners need: runners, actions and hooks, of an organisation, a repository or an enterprise.
//! - Of secondary limits there is only that of points per minute, not that of concurrent requests.
//! - Payloads have all keys of GitHub's published examples, and those that people fill in are constants.

mod access;
mod app_key;
mod assign;
mod call;
mod calls;
mod chaos;
mod event;
mod fault;
mod happening;
mod hash;
mod hook;
mod job;
mod jwt;
mod limit;
mod names;
mod random;
mod request;
mod response;
mod route;
mod rsa;
mod runner;
mod scenario;
mod service;
mod setup;
mod stand_in;
mod table;
#[cfg(test)]
mod tests;
mod timing;

pub use app_key::APP_KEY;
pub use chaos::{WebhookChaos, WebhookEffect, WebhookFault};
pub use fault::{Fault, FaultEffect, Reply};
pub use hook::{Delivery, DeliveryRecord, Hook};
pub use job::{Conclusion, Execution, Job, JobSpec, JobState, Rerun, Run};
pub use limit::Limits;
pub use names::{RepositoryName, Scope};
pub use request::{Method, Request};
pub use response::Response;
pub use route::Route;
pub use runner::{Runner, RunnerGroup, RunnerSpec};
pub use scenario::RunnerRefusal;
pub use service::{Poll, ScaleSet, Statistics};
pub use setup::{Assignment, RepositorySetup, Setup, Style};
pub use stand_in::StandIn;
pub use table::ROUTES;
pub use timing::Timing;

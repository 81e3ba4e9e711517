//! The autopilot's decisions as one pure state machine: events in, commands out.

pub mod advice;
pub mod budget;
pub mod core;
#[cfg(test)]
mod corpus;
pub mod decide;
pub mod decision;
mod documents;
mod effective;
pub mod evaluate;
pub mod exclude;
pub mod exclusion;
#[cfg(test)]
mod fuzz;
mod gated;
pub mod glob;
mod guards;
pub mod identity;
pub mod lint;
pub mod nearest;
mod notice;
pub mod ownership;
pub mod plan;
mod release;
pub mod removal;
pub mod report;
pub mod scope;
pub mod state_word;
pub mod status;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod testing;
pub mod unwanted;

pub use budget::Budget;
pub use core::explain::{Explanation, Owner};
pub use core::{Config, Core, Previews};
pub use decide::{Inspected, Observed, Refused, Remembered, decide, inspect};
pub use decision::{Decision, PendingWrite, Verdict};
pub use documents::DocumentEdits;
pub use evaluate::gates::{GateKind, GateOutcome, GateRow, gates};
pub use evaluate::{AssetResult, Before, Evaluation, Exclusion, Outcome, WrittenRules, evaluate};
pub use exclude::exclude;
pub use exclusion::Exclusions;
pub use gated::Approvals;
pub use identity::IDENTITY;
pub use notice::{Notice, ObjectNotice, OverrideKind, Rollout, RolloutState, State};
pub use ownership::Origin;
pub use plan::Plan;
pub use removal::{Cause, Removal, decide_removal};
pub use report::{Operator, Policy, Report, ReportLine, WaitingPool};
pub use scope::Scope;
pub use state_word::StateWord;
pub use status::{LineState, ObjectState, StatusLine, WaitingForPool, waiting_by_pool};

//! Which objects are kept, and what is to be done about each: a verdict, a reason, an effect.

pub mod budget;
#[cfg(test)]
mod corpus;
pub mod decide;
pub mod exclude;
pub mod exclusion;
#[cfg(test)]
mod fuzz;
mod guards;
mod release;
pub mod scope;
mod wish;

pub use budget::Budget;
pub use decide::{Decision, Effect, Observed, Refused, Remembered, Tell, Verdict, decide};
pub use exclude::exclude;
pub use exclusion::Exclusions;
pub use scope::{Consent, Scope};

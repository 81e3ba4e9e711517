//! Which objects are kept, and what is to be done about each: a verdict, a reason, an effect.

pub mod budget;
#[cfg(test)]
mod corpus;
pub mod decide;
pub mod decision;
pub mod exclude;
pub mod exclusion;
#[cfg(test)]
mod fuzz;
mod guards;
pub mod parting;
mod release;
mod restart;
pub mod scope;
pub mod standing;
mod wish;

pub use budget::Budget;
pub use decide::{Inspected, Observed, Refused, Remembered, decide, inspect};
pub use decision::{Decision, Effect, Tell, Verdict};
pub use exclude::exclude;
pub use exclusion::Exclusions;
pub use parting::{Cause, Parting, Since, part};
pub use scope::{Consent, Scope};
pub use standing::Origin;

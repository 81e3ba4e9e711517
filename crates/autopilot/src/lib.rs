//! Which objects are kept, and what is to be done about each: a verdict, a reason, an effect.

pub mod budget;
pub mod decide;
pub mod exclusion;
pub mod scope;

pub use budget::Budget;
pub use decide::{Decision, Effect, Observed, Remembered, Tell, Verdict, decide};
pub use exclusion::Exclusions;
pub use scope::{Consent, Scope};

//! Go's text templates: gotmpl reads them, we run them.
//!
//! gotmpl's own executor is not used, for three reasons: `set` and `merge` change a map in place, which its values
//! cannot; its errors do not say the line; and a template must not be able to use up the machine.

pub mod balance;
pub mod budget;
pub mod functions;
pub mod names;
#[cfg(test)]
mod oracle;
pub mod parsed;
pub mod print;
pub mod run;
pub mod value;

pub use parsed::Parsed;
pub use run::{RenderContext, Stop, run};
pub use value::Value;

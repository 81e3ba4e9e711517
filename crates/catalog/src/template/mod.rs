//! Go's text templates: gotmpl parses them, we execute them.
//!
//! gotmpl's own executor is not used, for three reasons: `set` and `merge` change a map in place, which its values
//! cannot; its errors have no line; and a template must not be able to exhaust memory or CPU.

pub mod balance;
pub mod budget;
pub mod functions;
mod gzipped;
mod last_yaml;
pub mod names;
#[cfg(test)]
mod oracle;
pub mod parsed;
pub mod print;
pub mod run;
pub mod value;

pub use gzipped::Gzipped;
pub use last_yaml::LastYaml;
pub use parsed::Parsed;
pub use run::{RenderContext, Stop, run};
pub use value::Value;

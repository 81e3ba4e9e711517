//! Changes that restart nodes: how they are recognised, what the user agreed to, and the gate they pass.

pub mod approval;
pub mod consent;
pub mod gate;
pub mod impact;
pub mod restarts;
#[cfg(test)]
mod tests;
pub mod window;

//! The advisor: a plan that a person reads and approves, applied exactly as approved.

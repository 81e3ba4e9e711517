//! The real guest against an HTTPS server of the test: whatever happens, it powers off, says why, and leaves no secret.

// Clippy takes only functions marked as tests for tests.
#![allow(clippy::unwrap_used)]

mod endings;
mod operator;
mod scene;
mod secrets;

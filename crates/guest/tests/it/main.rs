//! The real guest against an HTTPS server of the test: whatever happens, it powers off, says why, and leaves no secret.

mod endings;
mod operator;
mod scene;
mod secrets;

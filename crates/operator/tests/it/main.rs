//! The operator under its own service account on a real API server.

// Clippy takes only functions marked as tests for tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod activation;
mod agreement;
mod commands;
mod corpus;
mod crash;
mod definitions;
mod facts;
mod faults;
mod keeping;
mod kinds;
mod leading;
mod life;
mod moving;
mod operator;
mod ownership;
mod rollback;
mod scene;
mod scripts;
mod stage;
mod steering;
mod trouble;
mod war;

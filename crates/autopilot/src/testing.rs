//! A model of the API server, and a test bed that runs the core against it. A story is a test that acts as users do and expects commands.

pub(crate) mod acts;
pub(crate) mod bed;
pub(crate) mod machine_configs;
pub(crate) mod pack;
pub(crate) mod print;
pub(crate) mod promises;
pub(crate) mod requests;
mod server_tests;
pub(crate) mod watching;

pub(crate) use server_model::{fields, server, serving, stored};

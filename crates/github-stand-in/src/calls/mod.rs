//! What each call of the REST API does.

pub(crate) mod app;
pub(crate) mod groups;
pub(crate) mod hooks;
pub(crate) mod machine;
pub(crate) mod repositories;
pub(crate) mod runners;
pub(crate) mod workflows;

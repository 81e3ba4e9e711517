//! The calls of the API, one function each.

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod clone;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod node;
pub(crate) mod pool;
pub(crate) mod power;
pub(crate) mod qemu;
pub(crate) mod storage;
pub(crate) mod task;

//! The fleet: one machine for each claim, on a hypervisor outside of the cluster, never lost and never someone else's.

pub mod hypervisor;

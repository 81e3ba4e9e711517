//! A seeded simulation of GitHub, machines and the operator.

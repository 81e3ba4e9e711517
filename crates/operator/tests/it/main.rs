//! Tests of the operator with its own service account on a real API server.

// Clippy allows these only in functions that are marked as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod activation;
mod adding_an_opinion;
mod agreement;
mod alerts;
mod broken_assets;
mod catalogue;
mod commands;
mod corpus;
mod crash;
mod crds;
mod dashboards;
mod documents;
mod facts;
mod faults;
mod fights;
mod fixture;
mod foreign_owners;
mod hanging_webhook;
mod installation;
mod kinds;
mod leader_election;
mod life_cycle_scenario;
mod node_files;
mod operation_rules;
mod operator;
mod override_scenario;
mod overrides;
mod ownership;
mod packages;
mod people;
mod plan;
mod random_plans;
mod reconcile;
mod refused_watches;
mod restarts;
mod restored_cluster;
mod rollback;
mod scripts;
mod secrets;
mod status_failures;
mod switches;
mod units;
mod upgrades;

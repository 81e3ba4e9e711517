//! Metrics of the rollouts of pools.

use super::register;
use api::metric;
use autopilot::{Rollout, RolloutState};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The label of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolName {
    pool: String,
}

/// The rollouts of pools.
pub(super) struct Rollouts {
    machines: Family<PoolName, Gauge>,
    updated: Family<PoolName, Gauge>,
    degraded: Family<PoolName, Gauge>,
    restarts: Family<PoolName, Counter>,
}

impl Rollouts {
    pub(super) fn register(registry: &mut Registry) -> Rollouts {
        Rollouts {
            machines: register(registry, &metric::POOL_MACHINES, Family::default()),
            updated: register(registry, &metric::POOL_UPDATED_MACHINES, Family::default()),
            degraded: register(registry, &metric::POOL_DEGRADED, Family::default()),
            restarts: register(registry, &metric::NODE_RESTARTS, Family::default()),
        }
    }

    pub(super) fn show(&self, rollout: &Rollout) {
        let pool = PoolName { pool: rollout.pool.clone() };
        self.machines.get_or_create_owned(&pool).set(rollout.machines);
        self.updated.get_or_create_owned(&pool).set(rollout.updated);
        self.degraded.get_or_create_owned(&pool).set(i64::from(rollout.state == RolloutState::Degraded));
    }

    pub(super) fn forget(&self, pool: &str) {
        let pool = PoolName { pool: pool.to_owned() };
        for family in [&self.machines, &self.updated, &self.degraded] {
            family.remove(&pool);
        }
    }

    pub(super) fn restarted(&self, pool: &str) {
        self.restarts.get_or_create_owned(&PoolName { pool: pool.to_owned() }).inc();
    }
}

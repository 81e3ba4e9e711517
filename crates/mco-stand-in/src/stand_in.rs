//! All controllers together, as one state machine.

use crate::daemon::{Daemon, Moment};
use crate::node::Node;
use crate::render::RenderState;
use crate::snapshot::{Kind, Snapshot, Write};
use crate::timing::Timing;
use crate::{kubelet, pool, status};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The stand-in of the machine-config operator, with its daemons on all nodes.
#[derive(Debug)]
pub struct StandIn {
    timing: Timing,
    epoch: Timestamp,
    pools: BTreeMap<String, PoolState>,
    nodes: BTreeMap<String, Daemon>,
    wake_at: Option<Duration>,
}

/// What is remembered of one pool.
#[derive(Debug, Default)]
struct PoolState {
    render: RenderState,
    status_due: Option<Duration>,
}

impl StandIn {
    /// A stand-in for which `now` is counted from this moment.
    pub fn new(timing: Timing, epoch: Timestamp) -> StandIn {
        StandIn { timing, epoch, pools: BTreeMap::new(), nodes: BTreeMap::new(), wake_at: None }
    }

    /// Returns the writes that are due, in the order in which they are to be made.
    ///
    /// Call it whenever an object has changed, when it is time ([`StandIn::wake_at`]), and again after its writes until it returns none. A write
    /// that fails is returned again.
    pub fn step(&mut self, snapshot: &Snapshot, now: Duration) -> Vec<Write> {
        let text = self.text_of(now);
        let moment = Moment { now, text: &text };
        self.pools.retain(|name, _| snapshot.pools.contains_key(name));
        self.nodes.retain(|name, _| snapshot.nodes.contains_key(name));
        let mut writes = kubelet::step(snapshot, &text);
        for (name, pool) in &snapshot.pools {
            let state = self.pools.entry(name.clone()).or_default();
            writes.extend(state.render.step(pool, snapshot, &self.timing, now));
            writes.extend(pool::step(snapshot, name, pool));
            writes.extend(state.report(name, pool, snapshot, &self.timing, moment));
        }
        for (name, node) in &snapshot.nodes {
            let node = Node(node);
            let daemon = self.nodes.entry(name.clone()).or_insert_with(|| Daemon::of(node));
            writes.extend(daemon.step(node, snapshot, &self.timing, moment));
        }
        let renders = self.pools.values().flat_map(|pool| [pool.render.due(), pool.status_due]);
        let updates = self.nodes.values().map(Daemon::due);
        self.wake_at = renders.chain(updates).flatten().filter(|due| *due > now).min();
        writes
    }

    /// When the next step is due even if no object changes; `None` if nothing is.
    pub fn wake_at(&self) -> Option<Duration> {
        self.wake_at
    }

    /// How often it restarted a node.
    pub fn restarts(&self, node: &str) -> u64 {
        self.nodes.get(node).map_or(0, Daemon::restarts)
    }

    /// The time of conditions, in whole seconds as the API has it.
    fn text_of(&self, now: Duration) -> String {
        let since = SignedDuration::try_from(now).unwrap_or(SignedDuration::MAX);
        let at = self.epoch.saturating_add(since).unwrap_or(self.epoch);
        Timestamp::from_second(at.as_second()).unwrap_or(self.epoch).to_string()
    }
}

impl PoolState {
    /// Writes the pool's status some time after it became wrong, as it is by then.
    fn report(
        &mut self,
        name: &str,
        pool: &Value,
        snapshot: &Snapshot,
        timing: &Timing,
        moment: Moment,
    ) -> Option<Write> {
        let nodes = pool::sorted_nodes(snapshot, name);
        let status = status::of_pool(pool, &nodes, self.render.error(), moment.text);
        let Some(write) = Write::patch_status(Kind::Pool, name, pool, &json!({"status": status})) else {
            self.status_due = None;
            return None;
        };
        let due = *self.status_due.get_or_insert(moment.now + timing.status_lag);
        (moment.now >= due).then_some(write)
    }
}

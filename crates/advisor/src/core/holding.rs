//! Why an approved item is not written now: what is known may be outdated, its pools of nodes are not ready, or no maintenance window is open.

use super::Core;
use super::observing::requests;
use crate::health;
use crate::plan::Item;
use crate::situation::Hold;
use api::annotation::MAINTENANCE_WINDOW;
use catalog::Pool;
use change::consent::{ApprovalPolicy, Consent, Needed};
use change::gate::{Conditions, PoolState, Request};
use change::restarts::Scope;
use change::{Gate, Impact, Maintenance, Restarts, gate};
use observe::Surroundings;
use protocol::WatchTarget;
use std::collections::BTreeSet;

/// What a restart of nodes depends on.
const OF_NODES: [&str; 2] = ["MachineConfigPool", "MachineConfiguration"];

impl Core {
    /// Nothing is written by what was known before a watch was lost: an approval may be taken back, and what the plan is derived from may have
    /// changed, or the pools whose nodes it restarts.
    pub(super) fn outdated(&self, impact: Impact) -> Option<Hold> {
        let of_nodes = Surroundings::targets(false)
            .map(|(target, _)| target)
            .filter(|target| impact == Impact::High && OF_NODES.contains(&target.kind.kind.as_str()));
        let mut needed = [requests(), WatchTarget::of(&self.hco)].into_iter().chain(of_nodes);
        let lost = needed.find(|target| self.watches.is_open(target) && !self.watches.is_listed(target))?;
        let kind = &lost.kind.kind;
        let why = format!(
            "objects of the kind {kind} cannot be watched now, so what is known of them may be outdated; it is written once they are listed again"
        );
        Some(Hold { why, opens: None })
    }

    /// Why nodes are not to restart for an item now. A removal may be what repairs a pool that is rolling out its object, and so may another
    /// content of it. The error names rendered configurations to read first.
    pub(super) fn hold(&self, item: &Item, restarts: &Restarts) -> Result<Option<Hold>, BTreeSet<String>> {
        let is_concerned = |pool: &&Pool| match &restarts.scope {
            Scope::Pools(names) => names.contains(&pool.name),
            Scope::Selected | Scope::Cluster => true,
        };
        let [before, after] = &item.compared.contributions;
        let (mut not_ready, mut unread) = (None, BTreeSet::new());
        for pool in self.surroundings.pools().values().filter(|pool| item.impact == Impact::High && is_concerned(pool))
        {
            let Some(why) = pool.why_not_ready() else { continue };
            let may_repair = match before {
                Some(before) => health::may_repair(
                    &item.key,
                    [before, after.as_ref().unwrap_or(before)],
                    pool,
                    &self.readings.configurations,
                ),
                None => Ok(false),
            };
            match may_repair {
                Ok(true) => {}
                Ok(false) => not_ready = not_ready.or(Some(why)),
                Err(needed) => unread.extend(needed),
            }
        }
        if unread.is_empty() { Ok(self.gated(item.impact, not_ready.as_deref())) } else { Err(unread) }
    }

    /// The answer of the gate that the autopilot uses, too, for an item of an approved plan.
    fn gated(&self, impact: Impact, not_ready: Option<&str>) -> Option<Hold> {
        let window = self.facts.hco["metadata"]["annotations"][MAINTENANCE_WINDOW].as_str();
        let (maintenance, broken) = Maintenance::read(window);
        let consent = Consent { policy: ApprovalPolicy::Waived, ..Consent::default() };
        let request = Request {
            impact,
            digest: None,
            needed: Needed::ApprovalOrPolicy,
            changes_nothing: false,
            is_free_if_running: false,
            suspended: false,
        };
        let conditions = Conditions {
            consent: &consent,
            pool: not_ready.map_or(PoolState::Ready, PoolState::NotReady),
            window: maintenance.at(self.now.wall),
            maintenance: &maintenance,
        };
        let (why, opens) = match gate(&request, &conditions) {
            // That the plan is approved is found out elsewhere.
            Gate::Open | Gate::PoolUnknown | Gate::Suspended | Gate::NeedsApproval => return None,
            Gate::PoolNotReady { why } => (format!("{why}; it is written when the pool is ready"), None),
            Gate::WindowClosed { opens: Some(opens) } => {
                let shown = maintenance.shown(opens);
                (format!("it waits for the next maintenance window, which opens {shown}"), Some(opens))
            }
            Gate::WindowClosed { opens: None } => {
                let broken = broken.unwrap_or_default();
                let why = format!(
                    "no maintenance window is open, because the annotation maintenance-window of the HyperConverged cannot be read: {broken}"
                );
                (why, None)
            }
        };
        Some(Hold { why, opens })
    }
}

//! What an installation would do, from facts alone: every object counts as absent.

use super::{Item, ItemState, Operation, Source};
use crate::evaluate::{AssetResult, DesiredObject, evaluate};
use catalog::{Catalog, Facts};
use change::consent::Needed;
use change::{Approval, Impact, Planned, diff};

/// One item for every object that the facts ask for, in the order of writes, and for every asset that cannot be rendered.
pub fn offline(catalog: &Catalog, facts: &Facts, opt_in: bool) -> Vec<Item> {
    let evaluation = evaluate(catalog, facts, opt_in, None);
    let is_waived = evaluation.consent.is_waived(Needed::ApprovalOrPolicy);
    let is_unclear = evaluation.unclear.as_ref().map(ToString::to_string);
    let mut outcomes = evaluation.outcomes;
    outcomes.sort_by_key(|outcome| outcome.order);
    let failed = |asset: &str, why: String| Some(Item::bare(asset, None, ItemState::Failed, why));
    let item = |outcome: &crate::evaluate::Outcome| match &outcome.result {
        AssetResult::Included(object) => {
            let mut item = created(&outcome.asset, object, facts);
            if let Some(why) = &is_unclear {
                (item.state, item.why) = (ItemState::Held, why.clone());
            } else if object.impact == Impact::High && !is_waived {
                (item.state, item.needs_approval) = (ItemState::Waiting, true);
                item.why = "approval required; the digest to approve is known once the operator has run".to_owned();
            }
            Some(item)
        }
        AssetResult::Needs(queries) => {
            let queries: Vec<String> = queries.iter().map(ToString::to_string).collect();
            failed(
                &outcome.asset,
                format!("it needs {}; plan for a cluster (--kubeconfig) or with --facts", queries.join(", ")),
            )
        }
        AssetResult::Error(why) => failed(&outcome.asset, why.clone()),
        AssetResult::Filtered(_)
        | AssetResult::Unwanted { .. }
        | AssetResult::Excluded(_)
        | AssetResult::Missing { .. } => None,
    };
    outcomes.iter().filter_map(item).collect()
}

fn created(asset: &str, object: &DesiredObject, facts: &Facts) -> Item {
    let mut item = Item::bare(asset, Some(object.key.clone()), ItemState::Ready, String::new());
    item.operation = Some(Operation::Create);
    item.impact = Some(object.impact);
    item.diff = diff::of_wanted(None, &object.desired.object(), &[]);
    item.source = Source::Local { why: "there is no cluster".to_owned() };
    let (wanted, planned) = (Some(object.desired.digest()), &Planned::Create);
    item.digest = Some(Approval { key: &object.key, uid: None, wanted, planned, count: None }.digest());
    if object.impact == Impact::High {
        item.disruption = disruption(object, facts);
    }
    item
}

/// Which nodes restart, as far as the facts tell: they name pools, and count their machines.
fn disruption(object: &DesiredObject, facts: &Facts) -> String {
    let Some(name) = &object.pool else {
        return match Impact::is_everywhere(&object.key.kind.group, &object.key.kind.kind) {
            true => "restarts all nodes of the cluster".to_owned(),
            false => "restarts the nodes it selects, which may be all of the cluster".to_owned(),
        };
    };
    match facts.pools.iter().find(|pool| pool.name == *name) {
        Some(pool) if pool.machine_count == 1 => format!("restarts one node of pool {name}"),
        Some(pool) => {
            let machines = usize::try_from(pool.machine_count).unwrap_or_default();
            format!("restarts {machines} nodes of pool {name}, {} at a time", pool.at_a_time(machines))
        }
        None => format!("restarts the nodes of pool {name}"),
    }
}

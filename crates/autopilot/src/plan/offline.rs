//! What an installation would do, from facts alone: every object counts as absent.

use super::{Item, ItemState, Operation, Source};
use crate::evaluate::{AssetResult, Before, DesiredObject, evaluate};
use catalog::rollout::{Change, Contribution};
use catalog::{Catalog, Facts, Pool, Selector};
use change::consent::Needed;
use change::{Approval, Impact, Planned, Restarts, diff};

/// One item for every object that the facts ask for, in the order of writes, and for every asset that cannot be rendered.
pub fn offline(catalog: &Catalog, facts: &Facts, opt_in: bool) -> Vec<Item> {
    let evaluation = evaluate(catalog, facts, opt_in, Before::default());
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
        | AssetResult::Governed { .. }
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
    let contribution = Contribution::of(&object.key.kind, &object.desired.object());
    let change = Change { name: &object.key.name, before: None, after: Some(&contribution) };
    if change.is_vague() {
        return Restarts::default().to_string();
    }
    let pools = facts.pools.iter().map(|pool| match pool.machine_config_selector.is_empty() {
        // Facts of an older release do not tell.
        true => Pool { machine_config_selector: Selector::of(catalog::ROLE, &pool.name), ..pool.clone() },
        false => pool.clone(),
    });
    let pools: Vec<Pool> = pools.collect();
    let of_pool = |pool: &&Pool| {
        let machines = usize::try_from(pool.machine_count).unwrap_or_default();
        match machines {
            0 => format!("no node of pool {}", pool.name),
            1 => format!("one node of pool {}", pool.name),
            _ => format!("{machines} nodes of pool {}, {} at a time", pool.name, pool.at_a_time(machines)),
        }
    };
    let parts: Vec<String> = change.pools(pools.iter()).iter().map(of_pool).collect();
    match parts.as_slice() {
        [] if facts.pools.is_empty() => "restarts the nodes of its pool; the facts name no pools".to_owned(),
        [] => "restarts no node: no pool takes it".to_owned(),
        parts => format!("restarts {}", parts.join(" and ")),
    }
}

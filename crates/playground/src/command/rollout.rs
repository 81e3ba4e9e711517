//! The step of the demo in which a MachineConfig reaches the nodes, one after the other.

use super::print;
use super::story::{check, print_step, until};
use kube::api::{Api, DynamicObject, ListParams};
use mco_stand_in::annotation;
use playground::deployment::objects;
use playground::{MachineConfigOperator, Playground, UserError};
use std::collections::BTreeSet;

/// Shows and checks how a MachineConfig is rolled out.
pub(super) async fn show(
    playground: &Playground,
    machine_config: &str,
    operator: &MachineConfigOperator,
) -> Result<(), UserError> {
    let rollout = Rollout {
        pools: objects(playground, mco_stand_in::API_VERSION, "MachineConfigPool", None),
        nodes: objects(playground, "v1", "Node", None),
    };
    let all = until("the nodes are listed", async || rollout.nodes().await).await?;
    let targets = until("the MachineConfig is rendered", async || rollout.targets(machine_config).await).await?;
    // The name of a configuration contains that of its pool, and a node keeps its pool.
    let is_affected = |node: &&State| targets.iter().any(|(pool, _)| node.pool() == *pool);
    let affected: BTreeSet<String> = all.iter().filter(is_affected).map(|node| node.name.clone()).collect();
    print("  … The machine-config operator, here a stand-in, rolls it out node by node:\n")?;
    let (mut away, mut updated, mut most_away) = (BTreeSet::new(), BTreeSet::new(), 0);
    while updated.len() < affected.len() {
        let changed = async || {
            let nodes = rollout.nodes().await?;
            let of = |holds: &dyn Fn(&State) -> bool| -> BTreeSet<String> {
                let nodes = nodes.iter().filter(|node| affected.contains(&node.name) && holds(node));
                nodes.map(|node| node.name.clone()).collect()
            };
            let now_away = of(&|node| node.is_away);
            let now_updated = of(&|node| !node.is_away && targets.iter().any(|(_, target)| node.current == *target));
            ((&now_away, &now_updated) != (&away, &updated)).then_some((now_away, now_updated))
        };
        let (now_away, now_updated) = until("the next node is restarted or back", changed).await?;
        let total = affected.len();
        // A node that was seen neither drained nor restarting has been both meanwhile.
        for (index, node) in now_updated.difference(&updated).enumerate() {
            let done = updated.len() + index;
            if !away.contains(node) {
                print(&format!("      {node} is drained and restarts: {done} of {total} nodes updated\n"))?;
            }
            print(&format!("      {node} is back: {} of {total} nodes updated\n", done + 1))?;
        }
        for node in now_away.difference(&away) {
            print(&format!("      {node} is drained and restarts: {} of {total} nodes updated\n", now_updated.len()))?;
        }
        most_away = most_away.max(now_away.len());
        (away, updated) = (now_away, now_updated);
    }
    until("the pools are updated", async || rollout.are_updated(&targets).await).await?;
    check(most_away <= targets.len(), "more nodes were away at a time than the pools allow")?;
    for node in &all {
        let expected = u64::from(affected.contains(&node.name));
        check(operator.restarts(&node.name) == expected, &format!("{} did not restart as expected", node.name))?;
    }
    print_step(
        "Every node that the change is for was restarted once, one at a time in its pool, and no other.",
        &format!("{} of {} nodes restarted; pools updated: {}", affected.len(), all.len(), names(&targets)),
    )
}

fn names(targets: &[(String, String)]) -> String {
    let names: Vec<&str> = targets.iter().map(|(pool, _)| pool.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

struct Rollout {
    pools: Api<DynamicObject>,
    nodes: Api<DynamicObject>,
}

/// What a node says of its configuration.
struct State {
    name: String,
    current: String,
    /// Whether it is cordoned or not ready.
    is_away: bool,
}

impl State {
    fn of(node: &DynamicObject) -> State {
        let annotations = node.metadata.annotations.as_ref();
        let conditions = node.data["status"]["conditions"].as_array();
        let is_down = conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] != "True");
        State {
            name: node.metadata.name.clone().unwrap_or_default(),
            current: annotations.and_then(|all| all.get(annotation::CURRENT)).cloned().unwrap_or_default(),
            is_away: is_down || node.data["spec"]["unschedulable"] == true,
        }
    }

    /// The pool in `rendered-POOL-HASH`.
    fn pool(&self) -> &str {
        let rendered = self.current.strip_prefix("rendered-").and_then(|rest| rest.rsplit_once('-'));
        rendered.map(|(pool, _)| pool).unwrap_or_default()
    }
}

impl Rollout {
    async fn nodes(&self) -> Option<Vec<State>> {
        let list = self.nodes.list(&ListParams::default()).await.ok()?;
        Some(list.items.iter().map(State::of).collect())
    }

    /// The pools into which the MachineConfig is rendered, with the names of their configurations; `None` until all have one.
    async fn targets(&self, machine_config: &str) -> Option<Vec<(String, String)>> {
        let pools = self.pools.list(&ListParams::default()).await.ok()?.items;
        let is_for_workers =
            |pool: &&DynamicObject| pool.data["spec"]["machineConfigSelector"].to_string().contains("\"worker\"");
        pools
            .iter()
            .filter(is_for_workers)
            .map(|pool| {
                let configuration = &pool.data["spec"]["configuration"];
                let is_rendered =
                    configuration["source"].as_array()?.iter().any(|source| source["name"] == machine_config);
                let target = configuration["name"].as_str().filter(|_| is_rendered)?;
                Some((pool.metadata.name.clone()?, target.to_owned()))
            })
            .collect()
    }

    async fn are_updated(&self, targets: &[(String, String)]) -> Option<()> {
        for (pool, target) in targets {
            let pool = self.pools.get(pool).await.ok()?;
            let conditions = pool.data["status"]["conditions"].as_array()?;
            let is_updated = conditions.iter().any(|one| one["type"] == "Updated" && one["status"] == "True");
            if !is_updated || pool.data["status"]["configuration"]["name"] != *target {
                return None;
            }
        }
        Some(())
    }
}

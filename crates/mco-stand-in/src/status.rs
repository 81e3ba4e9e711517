//! The status of a pool, as the operator computes it from its nodes.

use crate::node::{Node, annotation};
use serde_json::{Value, json};

/// The status that a pool should have.
pub(crate) fn of_pool(pool: &Value, nodes: &[Node], render_error: Option<&str>, at: &str) -> Value {
    let name = pool["metadata"]["name"].as_str().unwrap_or_default();
    let configuration = &pool["spec"]["configuration"];
    let target = configuration["name"].as_str().unwrap_or_default();
    let count = |holds: &dyn Fn(&Node) -> bool| nodes.iter().copied().filter(holds).count();
    let is_updated = |node: &Node| node.is_done() && node.desired() == target;
    let (all, updated) = (nodes.len(), count(&is_updated));
    let ready = count(&|node| is_updated(node) && node.is_ready());
    let unavailable = count(&|node| node.is_unavailable());
    let degraded: Vec<&Node> = nodes.iter().filter(|node| node.is_degraded()).collect();
    let is_updated = updated == all && ready == all && unavailable == 0;

    let mut conditions = Conditions { list: pool["status"]["conditions"].as_array().cloned().unwrap_or_default(), at };
    if is_updated {
        conditions.set("Updated", true, "", &format!("All nodes are updated with MachineConfig {target}"));
        conditions.set("Updating", false, "", "");
    } else {
        conditions.set("Updated", false, "", "");
        if pool["spec"]["paused"] == true {
            let message = format!("Pool is paused; will not update to MachineConfig {target}");
            conditions.set("Updating", false, "", &message);
        } else {
            conditions.set("Updating", true, "", &format!("All nodes are updating to MachineConfig {target}"));
        }
    }
    let reasons: Vec<String> = degraded
        .iter()
        .map(|node| format!("Node {} is reporting: {:?}", node.name(), node.annotation(annotation::REASON)))
        .collect();
    let reasons = reasons.join(", ");
    let node_reason = match degraded.len() {
        0 => String::new(),
        count => format!("{count} nodes are reporting degraded status on sync"),
    };
    conditions.set("NodeDegraded", !degraded.is_empty(), &node_reason, &reasons);
    let render_message = render_error.map(|error| format!("Failed to render configuration for pool {name}: {error}"));
    conditions.set("RenderDegraded", render_error.is_some(), "", render_message.as_deref().unwrap_or_default());
    let is_degraded = !degraded.is_empty() || render_error.is_some();
    conditions.set("Degraded", is_degraded, "", if degraded.is_empty() { "" } else { &reasons });

    let running = if is_updated { configuration } else { &pool["status"]["configuration"] };
    json!({
        "observedGeneration": pool["metadata"]["generation"],
        "configuration": running,
        "machineCount": all,
        "updatedMachineCount": updated,
        "readyMachineCount": ready,
        "unavailableMachineCount": unavailable,
        "degradedMachineCount": degraded.len(),
        "conditions": conditions.list,
    })
}

struct Conditions<'a> {
    list: Vec<Value>,
    at: &'a str,
}

impl Conditions<'_> {
    /// Sets a condition. One that changes moves to the end, and its time changes only with its status.
    fn set(&mut self, kind: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { "True" } else { "False" };
        let mut wanted = json!({"type": kind, "status": status, "reason": reason, "message": message});
        let position = self.list.iter().position(|condition| condition["type"] == kind);
        let old = position.map(|position| self.list[position].clone());
        let time = match &old {
            Some(old) if old["status"] == status && old["lastTransitionTime"].is_string() => {
                old["lastTransitionTime"].clone()
            }
            _ => json!(self.at),
        };
        wanted["lastTransitionTime"] = time;
        if old.as_ref() == Some(&wanted) {
            return;
        }
        if let Some(position) = position {
            self.list.remove(position);
        }
        self.list.push(wanted);
    }
}

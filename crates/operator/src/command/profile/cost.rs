//! What a plan costs: how long its nodes take to restart, and how many virtual machines have to move. It is read when a plan is printed, with the
//! rights of the person: nobody follows every virtual machine for it.

use super::{Profile, Profiles};
use api::advisor::Item;
use catalog::rollout::restarts_of;
use catalog::{Node, Part, Pool};
use change::{Kind, Restarts};
use cluster::{Failure, list};
use protocol::Served;
use serde_json::Value;
use std::collections::BTreeMap;

/// The node of a virtual machine that runs, as a label.
const NODE_LABEL: &str = "kubevirt.io/nodeName";

/// What the items of a plan cost.
#[derive(Debug, Clone, Default)]
pub(super) struct Costs {
    /// What each item that restarts nodes does to them.
    of: BTreeMap<String, Restarts>,
    /// What could not be read, and why.
    unread: Vec<String>,
}

impl Costs {
    /// What an item costs; empty if that is not known.
    pub(super) fn text(&self, item: &str) -> String {
        self.of.get(item).map(Restarts::cost).unwrap_or_default()
    }

    /// The same for programs: minutes, and virtual machines.
    pub(super) fn figures(&self, item: &str) -> (Option<u64>, Option<usize>) {
        let restarts = self.of.get(item);
        (restarts.and_then(|of| Some(of.time?.minutes)), restarts.and_then(|of| of.virtual_machines))
    }

    /// What of it is not known, for people.
    pub(super) fn unknown(&self) -> Option<String> {
        (!self.unread.is_empty()).then(|| format!("Not known: {}.", self.unread.join("; ")))
    }
}

impl Profiles {
    /// A profile with what its plan costs.
    pub(super) async fn with_costs(&self, mut profile: Profile) -> Profile {
        if profile.changes().any(|item| !item.restarts.is_empty()) {
            profile.costs = self.costs(&profile).await;
        }
        profile
    }

    async fn costs(&self, profile: &Profile) -> Costs {
        let mut unread = Vec::new();
        let mut known = |what: &str, read: Result<Vec<Value>, Failure>| match read {
            Ok(read) => Some(read),
            Err(why) => {
                unread.push(format!("{what} ({why})"));
                None
            }
        };
        let time = "how long it takes";
        let nodes = known(time, self.metadata("v1", "Node", "").await);
        let pools = match &nodes {
            Some(_) => known(time, self.pools().await),
            None => None,
        };
        let machines = self.metadata("kubevirt.io/v1", "VirtualMachineInstance", NODE_LABEL).await;
        let machines = known("how many VMs move", machines);
        let parts = |kind: &str, objects: Option<Vec<Value>>| -> Vec<Part> {
            let objects = objects.into_iter().flatten();
            objects.filter_map(|object| Part::read(kind, &object.to_string()).ok()).collect()
        };
        let nodes = parts("Node", nodes).into_iter().filter_map(|part| match part {
            Part::Node(node) => Some(node),
            _ => None,
        });
        let pools = parts("MachineConfigPool", pools).into_iter().filter_map(|part| match part {
            Part::Pool(pool) => Some(*pool),
            _ => None,
        });
        let (nodes, pools): (Vec<Node>, Vec<Pool>) = (nodes.collect(), pools.collect());
        let on = |machine: &Value| machine["metadata"]["labels"][NODE_LABEL].as_str().map(str::to_owned);
        let machines: Option<Vec<String>> = machines.map(|machines| machines.iter().filter_map(on).collect());
        let items = profile.changes().filter(|item| !item.restarts.is_empty());
        let cost = |item: &Item| restarts_of(&item.restarts, &nodes, &pools, machines.as_deref());
        Costs { of: items.map(|item| (item.name.clone(), cost(item))).collect(), unread }
    }

    fn served(&self, api_version: &str, kind: &str) -> Option<Served> {
        self.kinds.find(&Kind::new(api_version, kind))
    }

    /// The metadata of all objects of a kind that have a label; none if the server does not serve it.
    async fn metadata(&self, api_version: &str, kind: &str, label: &str) -> Result<Vec<Value>, Failure> {
        match self.served(api_version, kind) {
            Some(served) => list::metadata(&self.server, &served, "", label).await,
            None => Ok(Vec::new()),
        }
    }

    async fn pools(&self) -> Result<Vec<Value>, Failure> {
        match self.served("machineconfiguration.openshift.io/v1", "MachineConfigPool") {
            Some(served) => list::whole(&self.server, &served, "").await,
            None => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Costs;
    use catalog::rollout::restarts_of;
    use catalog::{Node, Part, Pool};
    use serde_json::json;

    fn node(name: &str) -> Node {
        let labels = json!({"node-role.kubernetes.io/worker": ""});
        match Part::read("Node", &json!({"metadata": {"name": name, "labels": labels}}).to_string()) {
            Ok(Part::Node(node)) => node,
            other => panic!("{other:?}"),
        }
    }

    fn pool(name: &str, most: &str) -> Pool {
        let object =
            json!({"metadata": {"name": name}, "spec": {"maxUnavailable": most}, "status": {"machineCount": 5}});
        match Part::read("MachineConfigPool", &object.to_string()) {
            Ok(Part::Pool(pool)) => *pool,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_named_nodes_restart_as_their_pool_allows_and_their_virtual_machines_are_counted() {
        let nodes: Vec<Node> = ["w0", "w1", "w2", "w3", "w4"].map(node).into();
        let machines = ["w0", "w0", "w2", "other"].map(str::to_owned);
        let named = ["w0", "w1", "w2"].map(str::to_owned);
        let cost = |pools: &[Pool], machines: Option<&[String]>| {
            let of = [("args".to_owned(), restarts_of(&named, &nodes, pools, machines))].into();
            Costs { of, unread: Vec::new() }
        };
        let known = cost(&[pool("master", "1"), pool("worker", "1")], Some(&machines));
        assert_eq!(known.text("args"), "about 30 min (a guess), 3 VMs move");
        assert_eq!((known.figures("args"), known.text("other").as_str()), ((Some(30), Some(3)), ""));
        assert_eq!(cost(&[pool("worker", "2")], None).text("args"), "about 20 min (a guess)");
        assert_eq!(cost(&[], Some(&[])).text("args"), "no VM has to move");
        assert_eq!(cost(&[], None).text("args"), "");
    }

    #[test]
    fn what_could_not_be_read_is_said() {
        assert_eq!(Costs::default().unknown(), None);
        let costs = Costs { unread: vec!["how many VMs move (forbidden)".into()], ..Costs::default() };
        assert_eq!(costs.unknown().as_deref(), Some("Not known: how many VMs move (forbidden)."));
    }
}

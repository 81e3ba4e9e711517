//! What there is on the cluster, as far as templates and conditions look at it.

use crate::kinds::Kinds;
use crate::request::Failure;
use crate::server::Server;
use catalog::{Hardware, NodeFacts, Topology};
use change::Kind;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::Value;

/// A node's name and roles.
#[derive(Debug, Clone)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its roles: `worker`, `master` ...
    pub roles: Vec<String>,
}

/// Hardware, topology and nodes as they are now. An error is an error and never an empty cluster.
pub async fn look(server: &Server, kinds: &Kinds) -> Result<(Hardware, Topology, Vec<Named>), Failure> {
    match tokio::time::timeout(server.patience.request, look_at(&server.client, kinds)).await {
        Ok(look) => Ok(look?),
        Err(_) => Err(Failure::Unanswered("no answer in time".into())),
    }
}

async fn look_at(client: &Client, kinds: &Kinds) -> kube::Result<(Hardware, Topology, Vec<Named>)> {
    let api: Api<Node> = Api::all(client.clone());
    let params = ListParams::default();
    let (infrastructure, scheduler) = (config(client, kinds, "Infrastructure"), config(client, kinds, "Scheduler"));
    let (list, infrastructure, scheduler) = futures::try_join!(api.list(&params), infrastructure, scheduler)?;
    let named = list.items.iter().map(name).collect();
    let nodes: Vec<NodeFacts> = list.items.into_iter().map(project).collect();
    let topology = Topology::from_nodes(&nodes, infrastructure.as_ref(), scheduler.as_ref());
    Ok((Hardware::from_nodes(&nodes), topology, named))
}

async fn config(client: &Client, kinds: &Kinds, kind: &str) -> kube::Result<Option<Value>> {
    let Some(served) = kinds.find(&Kind::new("config.openshift.io/v1", kind)) else { return Ok(None) };
    let found = served.api(client, "").get_opt("cluster").await?;
    Ok(found.map(|object| serde_json::to_value(object).unwrap_or_default()))
}

fn name(node: &Node) -> Named {
    let labels = node.metadata.labels.iter().flatten();
    Named {
        name: node.metadata.name.clone().unwrap_or_default(),
        roles: labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).map(str::to_owned).collect(),
    }
}

fn project(node: Node) -> NodeFacts {
    let capacity = node.status.and_then(|status| status.capacity).unwrap_or_default();
    NodeFacts {
        labels: node.metadata.labels.unwrap_or_default(),
        annotations: node.metadata.annotations.unwrap_or_default(),
        capacity: capacity.into_iter().map(|(name, amount)| (name, amount.0)).collect(),
    }
}

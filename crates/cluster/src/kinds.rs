//! Which kinds the API server serves, and how.

use change::Kind;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope};

/// What the API server serves, as of one discovery.
pub struct Kinds {
    discovery: Discovery,
}

/// A kind that is served.
#[derive(Debug, Clone)]
pub struct Served {
    /// How it is addressed.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kinds {
    /// Asks once: two requests, whatever the number of kinds.
    pub async fn discover(client: &Client) -> kube::Result<Kinds> {
        Ok(Kinds { discovery: Discovery::new(client.clone()).run_aggregated().await? })
    }

    /// How a kind is served; `None` if it is not.
    pub fn find(&self, kind: &Kind) -> Option<Served> {
        let wanted = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let (resource, capabilities) = self.discovery.resolve_gvk(&wanted)?;
        Some(Served { resource, namespaced: capabilities.scope == Scope::Namespaced })
    }

    /// The newest of these versions of a kind that is served.
    pub fn newest(&self, group: &str, versions: &[&str], kind: &str) -> Option<(Kind, Served)> {
        versions.iter().find_map(|version| {
            let kind = Kind { group: group.into(), version: (*version).into(), kind: kind.into() };
            self.find(&kind).map(|served| (kind, served))
        })
    }
}

impl Served {
    /// The objects of this kind, in a namespace if they live in one.
    pub fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.namespaced && !namespace.is_empty() {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }
}

//! Which kinds the API server serves, and how.

use crate::request::{Failure, Sent, send};
use crate::server::Server;
use change::Kind;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Everything in one answer; servers before 1.30 know it under the older name.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// What the API server serves, as of one discovery.
#[derive(Debug, Default)]
pub struct Kinds(BTreeMap<Kind, (Box<str>, bool)>);

/// A kind that is served.
#[derive(Debug, Clone)]
pub struct Served {
    kind: Kind,
    /// As it stands in an address.
    plural: Box<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kinds {
    /// Asks once: two requests, whatever the number of kinds.
    pub async fn discover(server: &Server) -> Result<Kinds, Failure> {
        let ask = async |url: &str| send(server, Sent::get(url, AGGREGATED)).await;
        let (core, others) = futures::future::try_join(ask("/api"), ask("/apis")).await?;
        let mut kinds = Kinds::default();
        for text in [core, others] {
            kinds.add(&text)?;
        }
        Ok(kinds)
    }

    fn add(&mut self, text: &str) -> Result<(), Failure> {
        let list: Discovered = serde_json::from_str(text)?;
        for group in list.items {
            for version in group.versions {
                let all = version.resources.into_iter();
                for resource in all.filter(|resource| resource.verbs.iter().any(|verb| verb == "list")) {
                    let Some(kind) = resource.response_kind else { continue };
                    let (group, version) = (group.metadata.name.clone(), version.version.clone());
                    let plural = resource.resource.into_boxed_str();
                    let place = (plural, resource.scope == "Namespaced");
                    self.0.entry(Kind { group, version, kind: kind.kind }).or_insert(place);
                }
            }
        }
        Ok(())
    }

    /// How a kind is served; `None` if it is not.
    pub fn find(&self, kind: &Kind) -> Option<Served> {
        let (plural, namespaced) = self.0.get(kind)?;
        Some(Served { kind: kind.clone(), plural: plural.clone(), namespaced: *namespaced })
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
    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The address of one object, or with no name of all of them.
    pub(crate) fn url(&self, namespace: &str, name: &str) -> String {
        let Kind { group, version, .. } = &self.kind;
        let mut url = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.namespaced && !namespace.is_empty() {
            url.push_str(&format!("/namespaces/{namespace}"));
        }
        url.push_str(&format!("/{}", self.plural));
        if !name.is_empty() {
            url.push_str(&format!("/{name}"));
        }
        url
    }

    /// The objects of this kind, in a namespace if they live in one.
    pub fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let Kind { group, version, kind } = self.kind.clone();
        let (api_version, plural) = (self.kind.api_version(), self.plural.to_string());
        let resource = ApiResource { group, version, api_version, kind, plural };
        if self.namespaced && !namespace.is_empty() {
            Api::namespaced_with(client.clone(), namespace, &resource)
        } else {
            Api::all_with(client.clone(), &resource)
        }
    }
}

#[derive(Deserialize)]
struct Discovered {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    metadata: Named,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Named {
    /// The core group has none.
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    kind: String,
}

#[cfg(test)]
mod tests {
    use super::Kinds;
    use change::Kind;

    #[test]
    fn a_kind_is_found_with_its_address() {
        let resource = |resource: &str, kind: &str, scope: &str| {
            format!(
                r#"{{"resource":"{resource}","responseKind":{{"group":"","version":"","kind":"{kind}"}},"scope":"{scope}","verbs":["get","list"]}}"#
            )
        };
        let mut kinds = Kinds::default();
        let core = resource("services", "Service", "Namespaced");
        kinds.add(&format!(r#"{{"items":[{{"metadata":{{"creationTimestamp":null}},"versions":[{{"version":"v1","resources":[{core}]}}]}}]}}"#)).unwrap();
        let pool = resource("machineconfigpools", "MachineConfigPool", "Cluster");
        kinds
            .add(&format!(
                r#"{{"items":[{{"metadata":{{"name":"m.io"}},"versions":[{{"version":"v2","resources":[{pool}]}}]}}]}}"#
            ))
            .unwrap();
        let url = |api_version: &str, kind: &str| {
            kinds.find(&Kind::new(api_version, kind)).map(|served| served.url("n", "x"))
        };
        assert_eq!(url("v1", "Service").unwrap(), "/api/v1/namespaces/n/services/x");
        assert_eq!(url("m.io/v2", "MachineConfigPool").unwrap(), "/apis/m.io/v2/machineconfigpools/x");
        assert_eq!(url("m.io/v1", "MachineConfigPool"), None);
    }
}

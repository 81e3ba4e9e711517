//! Which templates a check of hypervisors takes into account: also those of other namespaces that may use them, as far as the person may read them.

use super::{try_to_list, unlisted};
use api::fleet::{HypervisorCluster, HypervisorMachineTemplate};
use cluster::{Failure, Server};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

const KIND: (&str, &str) = ("HypervisorMachineTemplate", "hypervisormachinetemplates");
/// In `allowedNamespaces`: all.
const ALL: &str = "*";

/// Templates, and where there may be more.
#[derive(Debug, Default)]
pub(super) struct Templates {
    pub(super) all: Vec<HypervisorMachineTemplate>,
    unread: Vec<Unread>,
}

/// A namespace whose templates could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Unread {
    /// The namespace; `*` for all others.
    pub(super) namespace: String,
    /// Why.
    pub(super) why: String,
}

impl Templates {
    /// Reads the templates that may use these hypervisors, which are all of one namespace if one was chosen.
    pub(super) async fn read(
        server: &Server,
        chosen: Option<&str>,
        clusters: &[HypervisorCluster],
    ) -> anyhow::Result<Templates> {
        let mut templates = Templates::default();
        let others = chosen.map(|chosen| others(chosen, clusters)).unwrap_or_default();
        // With the right to read them all, one request does.
        let wide = if others.is_empty() { chosen.unwrap_or_default() } else { "" };
        match listed(server, wide).await {
            Ok(found) => templates.add(found),
            Err(failure) if !others.is_empty() && failure.is_refusal() => {
                let chosen = chosen.unwrap_or_default();
                templates.add(listed(server, chosen).await.map_err(|failure| unlisted(server, KIND.1, &failure))?);
                for namespace in others {
                    let found = match namespace.as_str() {
                        ALL => Err(failure.clone()),
                        namespace => listed(server, namespace).await,
                    };
                    match found {
                        Ok(found) => templates.add(found),
                        Err(failure) => templates.unread.push(Unread { namespace, why: failure.to_string() }),
                    }
                }
            }
            Err(failure) => return Err(unlisted(server, KIND.1, &failure)),
        }
        Ok(templates)
    }

    /// Where templates may be that use a hypervisor and could not be read.
    pub(super) fn unread(&self, cluster: &HypervisorCluster) -> Vec<Unread> {
        let is_allowed = |unread: &&Unread| cluster.spec.allowed_namespaces.contains(&unread.namespace);
        self.unread.iter().filter(is_allowed).cloned().collect()
    }

    fn add(&mut self, found: Vec<Value>) {
        self.all.extend(found.into_iter().filter_map(|object| serde_json::from_value(object).ok()));
    }
}

/// The other namespaces whose templates may use these hypervisors, of which `*` stands for all.
fn others(chosen: &str, clusters: &[HypervisorCluster]) -> BTreeSet<String> {
    let allowed = clusters.iter().flat_map(|cluster| &cluster.spec.allowed_namespaces);
    allowed.filter(|namespace| *namespace != chosen).cloned().collect()
}

async fn listed(server: &Server, namespace: &str) -> Result<Vec<Value>, Failure> {
    try_to_list(server, KIND.0, KIND.1, namespace).await
}

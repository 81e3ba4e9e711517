//! Which cluster a command is about.

use crate::autopilot::discovery;
use crate::images;
use anyhow::Context;
use catalog::{Catalog, Facts, Node};
use change::Key;
use cluster::act::{self, Act};
use cluster::kinds::Served;
use cluster::{Kinds, Patience, Permit, Server};
use kube::api::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Its own operator writes the HyperConverged as well; so often in a row is enough.
const TRIES: u32 = 5;

#[derive(clap::Args)]
pub(crate) struct Target {
    /// The cluster; by default as KUBECONFIG says
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where the HyperConverged lives
    #[arg(long, default_value = api::hco::NAMESPACE)]
    pub(crate) namespace: String,
}

/// A cluster that was found, and its HyperConverged.
pub(crate) struct Reached {
    pub(crate) server: Server,
    pub(crate) kinds: Kinds,
    pub(crate) key: Key,
    pub(crate) served: Served,
    pub(crate) hco: DynamicObject,
}

impl Target {
    /// Runs something on that cluster.
    pub(crate) fn with<T>(&self, work: impl AsyncFnOnce(Reached) -> anyhow::Result<T>) -> anyhow::Result<T> {
        // The only TLS provider of the tree; a second installation is refused and harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("could not start")?;
        runtime.block_on(async { work(self.reach().await?).await })
    }

    async fn reach(&self) -> anyhow::Result<Reached> {
        let server = cluster::connect(self.kubeconfig.as_deref(), Patience::default()).await?;
        let kinds = Kinds::discover(&server).await.with_context(|| {
            format!(
                "could not ask the API server at {} what it serves; is it running, and is this the right kubeconfig?",
                server.address
            )
        })?;
        let (kind, served) = kinds
            .newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND)
            .context("this cluster does not serve HyperConverged: is its operator installed?")?;
        let key = Key { kind, namespace: self.namespace.clone(), name: api::hco::NAME.into() };
        let hco = served
            .api(&server.client, &key.namespace)
            .get(&key.name)
            .await
            .with_context(|| format!("could not read {key}"))?;
        Ok(Reached { server, kinds, key, served, hco })
    }
}

impl Reached {
    /// Changes an annotation of the HyperConverged from what it is to what `change` makes of it; false if that is nothing.
    pub(crate) async fn annotate(
        &self,
        name: &str,
        change: impl Fn(Option<&str>) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<bool> {
        let (mut hco, mut tries) = (self.hco.clone(), 0);
        loop {
            let before = hco.metadata.annotations.as_ref().and_then(|annotations| annotations.get(name));
            let Some(after) = change(before.map(String::as_str))? else { return Ok(false) };
            let act = Act::Annotate {
                annotations: BTreeMap::from([(name.to_owned(), after)]),
                resource_version: hco.metadata.resource_version.unwrap_or_default(),
            };
            tries += 1;
            match act::act(&self.server, &Permit::person(), &self.served, &self.key, act, 0).await {
                Ok(_) => return Ok(true),
                Err(act::Error::Stale(_)) if tries < TRIES => {
                    let read = self.served.api(&self.server.client, &self.key.namespace).get(&self.key.name).await;
                    hco = read.with_context(|| format!("could not read {}", self.key))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What there is on the cluster, and its nodes.
    pub(crate) async fn facts(&self, catalog: &Catalog) -> anyhow::Result<(Facts, Vec<Node>)> {
        let world = cluster::facts::look(&self.server, &self.kinds).await.context("could not read the nodes")?;
        let absent = discovery::absent(catalog, &self.kinds).collect();
        let mut hco = serde_json::to_value(&self.hco)?;
        if let Some(metadata) = hco.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let mut facts = Facts { hco, absent, images: images::from_environment(), ..Facts::default() };
        world.update(&mut facts);
        Ok((facts, world.nodes().to_vec()))
    }
}

//! The cluster of a command, and its HyperConverged.

use anyhow::Context;
use change::{Effect, Key};
use cluster::act::act;
use cluster::{KubeconfigContext, Permit, Server, Timeouts, discovery, live};
use protocol::{Kinds, Served, WriteError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How often a conflicting write of the HyperConverged is tried: its own operator writes it, too.
const ATTEMPTS: u32 = 5;

/// The error of a cluster without the HyperConverged CRD.
pub(super) const NO_HYPERCONVERGED: &str = "the cluster does not serve HyperConverged; install the HyperConverged Cluster Operator, or choose another kubeconfig";

#[derive(clap::Args)]
pub(crate) struct Target {
    /// The kubeconfig file; by default $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The namespace of the HyperConverged
    #[arg(long, short, default_value = api::hco::NAMESPACE, value_parser = super::value::namespace)]
    pub(crate) namespace: String,
}

/// A connection to a cluster, and its HyperConverged.
pub(crate) struct Reached {
    pub(crate) server: Server,
    pub(crate) kinds: Kinds,
    pub(crate) key: Key,
    pub(crate) served: Served,
    pub(crate) hco: Value,
}

/// Runs a future to completion.
pub(crate) fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // There is only one TLS provider; installing it twice is refused and harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the async runtime")?;
    runtime.block_on(work)
}

impl Target {
    /// Connects to the cluster and runs `work`.
    pub(crate) fn with<T>(&self, work: impl AsyncFnOnce(Reached) -> anyhow::Result<T>) -> anyhow::Result<T> {
        on_runtime(async { work(self.reach().await?).await })
    }

    /// Connects to the API server.
    pub(crate) async fn connect(&self) -> anyhow::Result<Server> {
        let chosen = KubeconfigContext { file: self.kubeconfig.as_deref(), context: self.context.as_deref() };
        Ok(cluster::connect(chosen, Timeouts::default(), autopilot::IDENTITY).await?)
    }

    /// Connects to the API server and reads the HyperConverged.
    pub(crate) async fn reach(&self) -> anyhow::Result<Reached> {
        let server = self.connect().await?;
        let kinds = discovery::discover(&server).await.with_context(|| {
            format!(
                "could not ask the API server at {} what it serves; check that it is running and that the kubeconfig is right",
                server.address
            )
        })?;
        let (kind, served) =
            kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND).context(NO_HYPERCONVERGED)?;
        let key = Key { kind, namespace: self.namespace.clone(), name: api::hco::NAME.into() };
        let hco = read(&server, &served, &key).await?;
        Ok(Reached { server, kinds, key, served, hco })
    }
}

/// Reads the HyperConverged.
async fn read(server: &Server, served: &Served, key: &Key) -> anyhow::Result<Value> {
    let read = live::whole(server, served, key).await.with_context(|| format!("could not read {key}"))?;
    read.with_context(|| absent(key))
}

/// The error of a cluster without the HyperConverged.
pub(super) fn absent(key: &Key) -> String {
    format!("{key} does not exist; create it, or name its namespace with --namespace")
}

impl Reached {
    /// Writes one object on behalf of the person who runs the command.
    pub(crate) async fn write(
        &self,
        field_manager: &str,
        served: &Served,
        key: &Key,
        effect: Effect,
    ) -> Result<protocol::Written, WriteError> {
        act(&self.server, &Permit::typed_command(), field_manager, served, key, effect, 0).await
    }

    /// Sets an annotation of the HyperConverged to the value that `change` returns; returns false if it returns none.
    pub(crate) async fn annotate(
        &self,
        name: &str,
        change: impl Fn(Option<&str>) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<bool> {
        let change = |before: &Value| {
            let after = change(before[name].as_str())?;
            Ok(after.map(|after| BTreeMap::from([(name.to_owned(), Some(after))])).unwrap_or_default())
        };
        self.change_annotations(change).await
    }

    /// Sets the annotations of the HyperConverged that `change` returns for those that exist, and removes those without a value; returns
    /// false if it returns none. If somebody else writes the object at the same time, `change` is asked again, so that nothing is lost.
    pub(crate) async fn change_annotations(
        &self,
        change: impl Fn(&Value) -> anyhow::Result<BTreeMap<String, Option<String>>>,
    ) -> anyhow::Result<bool> {
        let (mut hco, mut attempts) = (self.hco.clone(), 0);
        loop {
            let annotations = change(&hco["metadata"]["annotations"])?;
            if annotations.is_empty() {
                return Ok(false);
            }
            let resource_version = hco["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            attempts += 1;
            let effect = Effect::Annotate { annotations, resource_version };
            match self.write(api::FIELD_MANAGER, &self.served, &self.key, effect).await {
                Ok(_) => return Ok(true),
                Err(WriteError::Stale(_)) if attempts < ATTEMPTS => {
                    hco = read(&self.server, &self.served, &self.key).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

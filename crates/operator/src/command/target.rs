//! Which cluster a command is about.

use anyhow::Context;
use kube::Client;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Target {
    /// The cluster; by default as KUBECONFIG says
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where the HyperConverged lives
    #[arg(long, default_value = api::hco::NAMESPACE)]
    pub(crate) namespace: String,
}

impl Target {
    /// Runs something on that cluster.
    pub(crate) fn with<T>(&self, work: impl AsyncFnOnce(Client) -> anyhow::Result<T>) -> anyhow::Result<T> {
        // The only TLS provider of the tree; a second installation is refused and harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("could not start")?;
        runtime.block_on(async { work(cluster::connect(self.kubeconfig.as_deref()).await?).await })
    }
}

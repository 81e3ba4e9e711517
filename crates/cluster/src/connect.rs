//! The connection to the API server.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::{Path, PathBuf};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig cannot be used.
    #[error("could not use the kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// There is no kubeconfig, and this is no pod.
    #[error(
        "found no cluster: neither --kubeconfig nor KUBECONFIG is given, and this is not a pod with a service account"
    )]
    Nowhere(#[source] kube::config::InferConfigError),
    /// The client cannot be made.
    #[error("could not make a client for {server}")]
    Client {
        /// The API server.
        server: String,
        /// Why.
        source: kube::Error,
    },
}

/// A client by a kubeconfig, or as KUBECONFIG or the pod's service account say.
///
/// It never retries by itself: a write that hangs for minutes could outlive the right to make it.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, Error> {
    let mut config = match kubeconfig {
        Some(path) => {
            let wrong = |source| Error::Kubeconfig { path: path.to_owned(), source };
            let file = Kubeconfig::read_from(path).map_err(wrong)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(wrong)?
        }
        None => Config::infer().await.map_err(Error::Nowhere)?,
    };
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    Client::try_from(config).map_err(|source| Error::Client { server, source })
}

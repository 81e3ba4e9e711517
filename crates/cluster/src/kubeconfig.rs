//! Finds the API server and the credentials for it: a kubeconfig file, or the service account of a pod.

use crate::request::chain;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::path::{Path, PathBuf};

/// Why there is no usable configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kubeconfig cannot be used.
    #[error("could not use the kubeconfig {origin}: {why}")]
    Kubeconfig {
        /// The file, and what named it.
        origin: String,
        /// Why.
        why: String,
    },
    /// This is a pod, and its service account cannot be used.
    #[error("this is a pod, but its service account cannot be used: {0}; mount its token, or give --kubeconfig FILE")]
    Pod(String),
    /// There is no kubeconfig, and this is not a pod.
    #[error(
        "found no cluster: neither --kubeconfig nor KUBECONFIG is given, ~/.kube/config does not exist, and this is not a pod; \
         give --kubeconfig FILE"
    )]
    NoCluster,
}

/// Which cluster is meant.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access<'a> {
    /// The kubeconfig file, if one is given.
    pub kubeconfig: Option<&'a Path>,
    /// Its context; by default the current one.
    pub context: Option<&'a str>,
}

impl<'a> Access<'a> {
    /// The current context of a kubeconfig, or of the default one.
    pub fn file(kubeconfig: Option<&'a Path>) -> Access<'a> {
        Access { kubeconfig, context: None }
    }
}

/// The configuration in this file, or else in the files of KUBECONFIG, in `~/.kube/config`, or of the pod.
pub(crate) async fn config(access: Access<'_>) -> Result<Config, Error> {
    let given = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let home = std::env::home_dir().map(|home| home.join(".kube/config")).filter(|path| path.exists());
    let (files, source) = match (access.kubeconfig, home) {
        (Some(file), _) => (vec![file.to_owned()], ""),
        (None, _) if !given.is_empty() => (std::env::split_paths(&given).collect(), " (from KUBECONFIG)"),
        (None, Some(home)) => (vec![home], ""),
        (None, None) if access.context.is_none() => return pod(),
        (None, None) => return Err(Error::NoCluster),
    };
    from_files(&files, source, access.context).await
}

fn pod() -> Result<Config, Error> {
    match Config::incluster() {
        Ok(config) => Ok(config),
        Err(error) if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => Err(Error::Pod(chain(&error))),
        Err(_) => Err(Error::NoCluster),
    }
}

/// Reads and merges some files; the first one that has a value wins.
async fn from_files(files: &[PathBuf], source: &str, context: Option<&str>) -> Result<Config, Error> {
    let mut merged = Kubeconfig::default();
    let origin = |path: &Path| format!("{}{source}", path.display());
    for path in files.iter().filter(|path| !path.as_os_str().is_empty()) {
        let wrong = |why: String| Error::Kubeconfig { origin: origin(path), why };
        check_encoding(path).map_err(wrong)?;
        let read = Kubeconfig::read_from(path).and_then(|read| merged.merge(read));
        merged = read.map_err(|error| wrong(explain(&error)))?;
    }
    let all: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let wrong = |why: String| Error::Kubeconfig { origin: format!("{}{source}", all.join(", ")), why };
    if let Some(name) = context
        && merged.contexts.iter().all(|known| known.name != name)
    {
        let known: Vec<&str> = merged.contexts.iter().map(|context| context.name.as_str()).collect();
        return Err(wrong(format!("it has no context {name:?}; it has {}", known.join(", "))));
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(merged, &options).await.map_err(|error| wrong(explain(&error)))
}

/// The library panics on some files that are not text. A pipe can be read only once, and is left to it.
fn check_encoding(path: &Path) -> Result<(), String> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Ok(());
    }
    let bytes = std::fs::read(path).map_err(|error| format!("{error}; check the path"))?;
    let is_utf_16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    match std::str::from_utf8(&bytes).is_ok() || (is_utf_16 && bytes.len() % 2 == 0) {
        true => Ok(()),
        false => Err("it is not a text file; give a kubeconfig in YAML".into()),
    }
}

/// What is wrong with a kubeconfig, in one line.
fn explain(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => {
            "it has no current-context; choose one with \"kubectl config use-context\"".into()
        }
        KubeconfigError::LoadContext(name) => {
            format!(
                "its current-context {name:?} is not among its contexts; choose one with \"kubectl config use-context\""
            )
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            format!("the cluster {name:?} of its context is not among its clusters")
        }
        KubeconfigError::Parse(error) => {
            // The first line says it; the others show the place.
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("it is not a valid kubeconfig: {}", line.trim_start_matches("error: "))
        }
        other => chain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::from_files;
    use std::path::Path;

    /// The error for a file with this content.
    async fn error(content: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, content).unwrap();
        let error = from_files(std::slice::from_ref(&path), " (from KUBECONFIG)", None).await.unwrap_err().to_string();
        let start = format!("could not use the kubeconfig {} (from KUBECONFIG): ", path.display());
        error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_one_line() {
        assert!(error(b"").await.starts_with("it has no current-context; "));
        assert!(error(b"kind: Service").await.starts_with("it has no current-context; "));
        assert!(
            error(b"current-context: x").await.starts_with("its current-context \"x\" is not among its contexts; ")
        );
        let broken = error(b"apiVersion: v1\nclusters: [{name: 1").await;
        assert_eq!(broken, "it is not a valid kubeconfig: line 2 column 12: unclosed bracket '{'");
        for binary in [b"\xff\xfe\x00".as_slice(), b"\xfe\xff\x00", b"\x80"] {
            assert!(error(binary).await.starts_with("it is not a text file; "));
        }
        let missing = from_files(&[Path::new("/nope").to_owned()], "", None).await.unwrap_err().to_string();
        assert_eq!(
            missing,
            "could not use the kubeconfig /nope: No such file or directory (os error 2); check the path"
        );
    }
}

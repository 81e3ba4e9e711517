//! Finds the API server and the credentials for it: a kubeconfig file, or the service account of a pod.

use crate::request::chain;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::Value;
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

/// A context of a kubeconfig: a cluster and a user.
#[derive(Debug, Clone, Copy)]
pub struct KubeconfigContext<'a> {
    /// The file, if one is given.
    pub file: Option<&'a Path>,
    /// The context; by default the current one.
    pub context: Option<&'a str>,
}

impl<'a> KubeconfigContext<'a> {
    /// The current context of a file, or of the default kubeconfig.
    pub fn current(file: Option<&'a Path>) -> KubeconfigContext<'a> {
        KubeconfigContext { file, context: None }
    }
}

/// The configuration in this file, or else in the files of KUBECONFIG, in `~/.kube/config`, or of the pod.
pub(crate) async fn config(chosen: KubeconfigContext<'_>) -> Result<Config, Error> {
    let given = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let home = std::env::home_dir().map(|home| home.join(".kube/config")).filter(|path| path.exists());
    let (files, source) = match (chosen.file, home) {
        (Some(file), _) => (vec![file.to_owned()], ""),
        (None, _) if !given.is_empty() => (std::env::split_paths(&given).collect(), " (from KUBECONFIG)"),
        (None, Some(home)) => (vec![home], ""),
        (None, None) if chosen.context.is_none() => return pod(),
        (None, None) => return Err(Error::NoCluster),
    };
    from_files(&files, source, chosen.context).await
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
    // As kubectl does, files of a list that do not exist are skipped.
    let is_list = files.len() > 1 && files.iter().any(|path| path.exists());
    let is_wanted = |path: &&PathBuf| !path.as_os_str().is_empty() && (!is_list || path.exists());
    for path in files.iter().filter(is_wanted) {
        let wrong = |why: String| Error::Kubeconfig { origin: origin(path), why };
        for read in read(path).map_err(wrong)? {
            merged = merged.merge(read).map_err(|error| wrong(explain(&error)))?;
        }
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

/// Reads the documents of a file. By way of JSON, because reading each type from YAML itself would take half a megabyte of code.
fn read(path: &Path) -> Result<Vec<Kubeconfig>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{error}; check the path"))?;
    let text = decode(&bytes).ok_or("it is not a text file; give a kubeconfig in YAML")?;
    // The first line says it; the others show the place.
    let first_line = |text: String| text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let wrong = |why: String| format!("it is not a valid kubeconfig: {}", first_line(why));
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| wrong(error.to_string()))?;
    let read = |document| {
        let mut config: Kubeconfig = serde_json::from_value(document).map_err(|error| wrong(kind_of_error(&error)))?;
        // An empty one, as "kubectl config unset" leaves it, hides none of another file.
        config.current_context = config.current_context.filter(|name| !name.is_empty());
        Ok(with_absolute_paths(config, path.parent().unwrap_or(Path::new(""))))
    };
    documents.into_iter().filter(|document| !document.is_null()).map(read).collect()
}

/// What is wrong with a value, without the value: it may be a secret in the wrong place.
fn kind_of_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match (text.split_once(['"', '`']), text.rsplit_once(", expected ")) {
        (Some((start, _)), Some((_, expected))) => format!("{}, expected {expected}", start.trim_end()),
        _ => text,
    }
}

/// Text in UTF-8, or in the UTF-16 of some Windows programs.
fn decode(bytes: &[u8]) -> Option<String> {
    let units = |unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes[2..].as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    match bytes {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// Paths in a kubeconfig are relative to its folder; a command without a slash is found by PATH.
fn with_absolute_paths(mut config: Kubeconfig, folder: &Path) -> Kubeconfig {
    let resolve = |file: &mut Option<String>| {
        let path = file.take().filter(|file| !file.is_empty());
        *file = path.map(|path| folder.join(path).to_string_lossy().into_owned());
    };
    for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        resolve(&mut cluster.certificate_authority);
    }
    for user in config.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        [&mut user.client_certificate, &mut user.client_key, &mut user.token_file].into_iter().for_each(resolve);
        let command = user.exec.as_mut().map(|exec| &mut exec.command);
        command.into_iter().filter(|command| command.as_ref().is_some_and(|path| path.contains('/'))).for_each(resolve);
    }
    config
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
        other => chain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::{from_files, read};
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
        let wrong_type = error(b"clusters: 7").await;
        assert_eq!(wrong_type, "it is not a valid kubeconfig: invalid type: integer, expected a sequence");
        let misplaced = error(b"users: [{name: a, user: {exec: geheim}}]").await;
        assert!(misplaced.contains("expected") && !misplaced.contains("geheim"), "{misplaced}");
        for binary in [b"\xff\xfe\x00".as_slice(), b"\xfe\xff\x00", b"\x80"] {
            assert!(error(binary).await.starts_with("it is not a text file; "));
        }
        let missing = from_files(&[Path::new("/nope").to_owned()], "", None).await.unwrap_err().to_string();
        assert_eq!(
            missing,
            "could not use the kubeconfig /nope: No such file or directory (os error 2); check the path"
        );
    }

    #[tokio::test]
    async fn files_of_a_list_that_do_not_exist_or_choose_no_context_are_no_hindrance() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        std::fs::write(&first, "current-context: \"\"\n").unwrap();
        let text = "current-context: a
contexts: [{name: a, context: {cluster: a}}]
clusters: [{name: a, cluster: {server: https://127.0.0.1:1, certificate-authority: \"\"}}]
";
        std::fs::write(&second, text).unwrap();
        let files = [folder.path().join("missing"), first, second];
        let config = from_files(&files, " (from KUBECONFIG)", None).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://127.0.0.1:1/");
    }

    #[test]
    fn paths_are_relative_to_the_folder_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "clusters:
- {name: a, cluster: {certificate-authority: ca.crt}}
---
users:
- name: a
  user:
    client-certificate: ../user.crt
    client-key: /keys/user.key
    tokenFile: token
    exec: {command: bin/login}
- {name: b, user: {exec: {command: login}}}
";
        let utf_16: Vec<u8> = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        for bytes in [text.as_bytes(), &utf_16] {
            std::fs::write(&path, bytes).unwrap();
            let documents = read(&path).unwrap();
            let absolute = |name: &str| Some(folder.path().join(name).display().to_string());
            let cluster = documents[0].clusters[0].cluster.as_ref().unwrap();
            assert_eq!(cluster.certificate_authority, absolute("ca.crt"));
            let users: Vec<_> = documents[1].auth_infos.iter().filter_map(|named| named.auth_info.as_ref()).collect();
            assert_eq!(users[0].client_certificate, absolute("../user.crt"));
            assert_eq!(users[0].client_key.as_deref(), Some("/keys/user.key"));
            assert_eq!(users[0].token_file, absolute("token"));
            assert_eq!(users[0].exec.as_ref().unwrap().command, absolute("bin/login"));
            assert_eq!(users[1].exec.as_ref().unwrap().command.as_deref(), Some("login"));
        }
    }
}

//! The pinned sources of the control plane, of the third-party CRDs and of programs that tests run, compiled in or read from a folder.

use crate::user_error::{self, UserError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The CRDs under `tools/crds` that are written from public documents.
const WRITTEN: [(&str, &str); 3] = [
    ("lokistacks.loki.grafana.com.yaml", include_str!("../../../tools/crds/lokistacks.loki.grafana.com.yaml")),
    (
        "storagebasedremediationconfigs.storage-based-remediation.medik8s.io.yaml",
        include_str!("../../../tools/crds/storagebasedremediationconfigs.storage-based-remediation.medik8s.io.yaml"),
    ),
    (
        "operationrulesets.ifo.kubevirt.io.yaml",
        include_str!("../../../tools/crds/operationrulesets.ifo.kubevirt.io.yaml"),
    ),
];

/// The text of the files under `tools/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// `control-plane/go.mod`
    pub control_plane_mod: String,
    /// `control-plane/go.sum`
    pub control_plane_sum: String,
    /// `packaging/go.mod`
    pub packaging_mod: String,
    /// `packaging/go.sum`
    pub packaging_sum: String,
    /// `crds/go.mod`
    pub crds_mod: String,
    /// `crds/go.sum`
    pub crds_sum: String,
    /// `crds/crds.toml`
    pub crds_table: String,
    /// `promtool/go.mod`
    pub promtool_mod: String,
    /// `promtool/go.sum`
    pub promtool_sum: String,
    /// `otlp-receiver/go.mod`
    pub otlp_receiver_mod: String,
    /// `otlp-receiver/go.sum`
    pub otlp_receiver_sum: String,
    /// `otlp-receiver/main.go`
    pub otlp_receiver_main: String,
    /// `shellcheck/requirements.txt`
    pub shellcheck: String,
    /// `github-clients/*`
    pub github_clients: GithubClients,
    /// `gitlab-clients/*`
    pub gitlab_clients: GitlabClients,
    /// `proxmox-clients/*`
    pub proxmox_clients: ProxmoxClients,
    /// `crds/*.yaml`: CRDs written from public documents.
    pub crds_written: BTreeMap<String, String>,
}

/// The text of the files under `tools/github-clients`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubClients {
    /// `go.mod`
    pub go_mod: String,
    /// `go.sum`
    pub go_sum: String,
    /// `main.go`
    pub main_go: String,
    /// `package.json`
    pub package: String,
    /// `package-lock.json`
    pub package_lock: String,
    /// `client.mjs`
    pub node: String,
}

/// The text of the files under `tools/gitlab-clients`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitlabClients {
    /// `requirements.txt`
    pub requirements: String,
    /// `client.py`
    pub python: String,
}

/// The text of the files under `tools/proxmox-clients`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxmoxClients {
    /// `go.mod`
    pub go_mod: String,
    /// `go.sum`
    pub go_sum: String,
    /// `main.go`
    pub main_go: String,
    /// `requirements.txt`
    pub requirements: String,
    /// `client.py`
    pub python: String,
    /// `package.json`
    pub package: String,
    /// `package-lock.json`
    pub package_lock: String,
    /// `client.mjs`
    pub node: String,
    /// `node.txt`: the package with Node.js, where none is installed.
    pub node_package: String,
    /// `schema.txt`: the package with the schema of the API.
    pub schema: String,
}

impl Tools {
    /// The files this program was built with, or those in the folder `VIRTPILOT_TOOLS` (to try other versions).
    pub fn load() -> Result<Tools, UserError> {
        match std::env::var_os("VIRTPILOT_TOOLS") {
            Some(folder) => Tools::read(&PathBuf::from(folder)),
            None => Ok(Tools {
                control_plane_mod: include_str!("../../../tools/control-plane/go.mod").to_owned(),
                control_plane_sum: include_str!("../../../tools/control-plane/go.sum").to_owned(),
                packaging_mod: include_str!("../../../tools/packaging/go.mod").to_owned(),
                packaging_sum: include_str!("../../../tools/packaging/go.sum").to_owned(),
                crds_mod: include_str!("../../../tools/crds/go.mod").to_owned(),
                crds_sum: include_str!("../../../tools/crds/go.sum").to_owned(),
                crds_table: include_str!("../../../tools/crds/crds.toml").to_owned(),
                promtool_mod: include_str!("../../../tools/promtool/go.mod").to_owned(),
                promtool_sum: include_str!("../../../tools/promtool/go.sum").to_owned(),
                otlp_receiver_mod: include_str!("../../../tools/otlp-receiver/go.mod").to_owned(),
                otlp_receiver_sum: include_str!("../../../tools/otlp-receiver/go.sum").to_owned(),
                otlp_receiver_main: include_str!("../../../tools/otlp-receiver/main.go").to_owned(),
                shellcheck: include_str!("../../../tools/shellcheck/requirements.txt").to_owned(),
                github_clients: GithubClients {
                    go_mod: include_str!("../../../tools/github-clients/go.mod").to_owned(),
                    go_sum: include_str!("../../../tools/github-clients/go.sum").to_owned(),
                    main_go: include_str!("../../../tools/github-clients/main.go").to_owned(),
                    package: include_str!("../../../tools/github-clients/package.json").to_owned(),
                    package_lock: include_str!("../../../tools/github-clients/package-lock.json").to_owned(),
                    node: include_str!("../../../tools/github-clients/client.mjs").to_owned(),
                },
                gitlab_clients: GitlabClients {
                    requirements: include_str!("../../../tools/gitlab-clients/requirements.txt").to_owned(),
                    python: include_str!("../../../tools/gitlab-clients/client.py").to_owned(),
                },
                proxmox_clients: ProxmoxClients {
                    go_mod: include_str!("../../../tools/proxmox-clients/go.mod").to_owned(),
                    go_sum: include_str!("../../../tools/proxmox-clients/go.sum").to_owned(),
                    main_go: include_str!("../../../tools/proxmox-clients/main.go").to_owned(),
                    requirements: include_str!("../../../tools/proxmox-clients/requirements.txt").to_owned(),
                    python: include_str!("../../../tools/proxmox-clients/client.py").to_owned(),
                    package: include_str!("../../../tools/proxmox-clients/package.json").to_owned(),
                    package_lock: include_str!("../../../tools/proxmox-clients/package-lock.json").to_owned(),
                    node: include_str!("../../../tools/proxmox-clients/client.mjs").to_owned(),
                    node_package: include_str!("../../../tools/proxmox-clients/node.txt").to_owned(),
                    schema: include_str!("../../../tools/proxmox-clients/schema.txt").to_owned(),
                },
                crds_written: WRITTEN.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            }),
        }
    }

    /// The files in a folder like `tools` of this repository.
    pub fn read(folder: &Path) -> Result<Tools, UserError> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))
        };
        Ok(Tools {
            control_plane_mod: read("control-plane/go.mod")?,
            control_plane_sum: read("control-plane/go.sum")?,
            packaging_mod: read("packaging/go.mod")?,
            packaging_sum: read("packaging/go.sum")?,
            crds_mod: read("crds/go.mod")?,
            crds_sum: read("crds/go.sum")?,
            crds_table: read("crds/crds.toml")?,
            promtool_mod: read("promtool/go.mod")?,
            promtool_sum: read("promtool/go.sum")?,
            otlp_receiver_mod: read("otlp-receiver/go.mod")?,
            otlp_receiver_sum: read("otlp-receiver/go.sum")?,
            otlp_receiver_main: read("otlp-receiver/main.go")?,
            shellcheck: read("shellcheck/requirements.txt")?,
            github_clients: GithubClients {
                go_mod: read("github-clients/go.mod")?,
                go_sum: read("github-clients/go.sum")?,
                main_go: read("github-clients/main.go")?,
                package: read("github-clients/package.json")?,
                package_lock: read("github-clients/package-lock.json")?,
                node: read("github-clients/client.mjs")?,
            },
            gitlab_clients: GitlabClients {
                requirements: read("gitlab-clients/requirements.txt")?,
                python: read("gitlab-clients/client.py")?,
            },
            proxmox_clients: ProxmoxClients {
                go_mod: read("proxmox-clients/go.mod")?,
                go_sum: read("proxmox-clients/go.sum")?,
                main_go: read("proxmox-clients/main.go")?,
                requirements: read("proxmox-clients/requirements.txt")?,
                python: read("proxmox-clients/client.py")?,
                package: read("proxmox-clients/package.json")?,
                package_lock: read("proxmox-clients/package-lock.json")?,
                node: read("proxmox-clients/client.mjs")?,
                node_package: read("proxmox-clients/node.txt")?,
                schema: read("proxmox-clients/schema.txt")?,
            },
            crds_written: read_written(&folder.join("crds"))?,
        })
    }

    /// The folder `tools` of the checkout that contains this folder.
    pub fn find(folder: &Path) -> Option<PathBuf> {
        folder.ancestors().map(|parent| parent.join("tools")).find(|tools| tools.join("crds/crds.toml").is_file())
    }
}

fn read_written(folder: &Path) -> Result<BTreeMap<String, String>, UserError> {
    let failed = |error| user_error::io("read", folder, error);
    let mut written = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            written.insert(name, text);
        }
    }
    Ok(written)
}

/// The version of a module that a `go.mod` requires.
pub fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut fields = line.trim().trim_start_matches("require ").split_whitespace();
        (fields.next() == Some(module)).then(|| fields.next()).flatten().filter(|version| version.starts_with('v'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Tools, required_version};
    use std::path::Path;

    #[test]
    fn the_compiled_in_files_are_those_of_the_checkout() {
        let folder = Tools::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let read = Tools::read(&folder).unwrap();
        if std::env::var_os("VIRTPILOT_TOOLS").is_none() {
            assert_eq!(Tools::load().unwrap(), read);
        }
        assert!(!read.crds_written.is_empty());
        assert_eq!(Tools::find(Path::new("/")), None);
    }

    #[test]
    fn the_version_is_read_from_a_block_and_from_a_single_line() {
        let go_mod =
            "module m\n\nrequire a.b/c v1.2.3\nrequire (\n\td.e/f v0.1.0 // indirect\n)\nreplace d.e/f => x v9\n";
        assert_eq!(required_version(go_mod, "a.b/c"), Some("v1.2.3"));
        assert_eq!(required_version(go_mod, "d.e/f"), Some("v0.1.0"));
        assert_eq!(required_version(go_mod, "d.e"), None);
    }
}

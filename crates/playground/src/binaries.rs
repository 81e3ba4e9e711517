//! The programs of the control plane, from `KUBEBUILDER_ASSETS`, from the cache or built from source.

use crate::cache::Cache;
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::{Tools, required_version};
use crate::user_error::{self, UserError};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

const PROGRAMS: [Program; 4] = [
    Program { name: "etcd", package: "go.etcd.io/etcd/server/v3", built_as: "server" },
    Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver", built_as: "kube-apiserver" },
    Program {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        built_as: "kube-controller-manager",
    },
    Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl", built_as: "kubectl" },
];

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// etcd
    pub etcd: PathBuf,
    /// kube-apiserver
    pub apiserver: PathBuf,
    /// kube-controller-manager
    pub controller_manager: PathBuf,
    /// kubectl
    pub kubectl: PathBuf,
}

impl Binaries {
    /// Finds all programs and builds the missing ones.
    pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Binaries, UserError> {
        let module = Module {
            kind: "control-plane",
            what: "the control plane",
            go_mod: &tools.control_plane_mod,
            go_sum: &tools.control_plane_sum,
            main_go: "",
            tags: "",
            linker_flags: linker_flags(tools)?,
            programs: &PROGRAMS,
            prebuilt: prebuilt_folder()?,
            instead: " (KUBEBUILDER_ASSETS does not have them)",
        };
        let mut found = module.ensure(cache, progress).await?.into_iter();
        let mut next = || found.next().unwrap_or_default();
        Ok(Binaries { etcd: next(), apiserver: next(), controller_manager: next(), kubectl: next() })
    }

    /// Identifies these programs, so that etcd data written by one set is not used with another.
    pub fn fingerprint(&self) -> String {
        let one = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok();
            let time = metadata.as_ref().and_then(|metadata| metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            format!("{} {:?} {time:?}", path.display(), metadata.map(|metadata| metadata.len()))
        };
        format!("{}\n{}", one(&self.etcd), one(&self.apiserver))
    }
}

fn prebuilt_folder() -> Result<Option<PathBuf>, UserError> {
    let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from)
    else {
        return Ok(None);
    };
    if folder.is_dir() {
        // Programs run in another working directory, so the path must be absolute.
        return std::path::absolute(&folder).map(Some).map_err(|error| user_error::io("use", &folder, error));
    }
    Err(UserError::new(
        format!("KUBEBUILDER_ASSETS is {}, which is not a folder", folder.display()),
        "unset it, or set it to a folder with etcd, kube-apiserver, kube-controller-manager and kubectl",
    ))
}

/// Sets the version: without it the server reports v0.0.0, which clients reject.
fn linker_flags(tools: &Tools) -> Result<String, UserError> {
    let version = required_version(&tools.control_plane_mod, "k8s.io/kubernetes").unwrap_or_default();
    let mut numbers = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (numbers.next().filter(|text| !text.is_empty()), numbers.next()) else {
        return Err(UserError::new(
            "tools/control-plane/go.mod requires no version of k8s.io/kubernetes",
            "add a line such as `require k8s.io/kubernetes v1.36.3`",
        ));
    };
    let package = "k8s.io/component-base/version";
    Ok(format!("-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"))
}

//! The programs of the control plane, from `KUBEBUILDER_ASSETS`, from the cache or built from source.

use crate::cache::{Cache, Key};
use crate::go_build::GoBuild;
use crate::progress::Progress;
use crate::tools::{Tools, required_version};
use crate::user_error::{self, UserError};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// Part of the cache key; increase it when the build changes.
const FORMAT_VERSION: &str = "1";

/// A program and its Go package.
struct Program {
    name: &'static str,
    package: &'static str,
    /// The file name that `go build` gives it.
    built_as: &'static str,
}

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
        let prebuilt = prebuilt_folder()?;
        let key = Key::of([FORMAT_VERSION, &tools.control_plane_mod, &tools.control_plane_sum]);
        let built = cache.entry("control-plane", &key);
        let locate = |name: &str| {
            let found = prebuilt.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            found.or_else(|| Some(built.join(name)).filter(|path| path.is_file()))
        };
        let missing = || PROGRAMS.iter().filter(|program| locate(program.name).is_none()).collect::<Vec<_>>();
        if !missing().is_empty() {
            let mut step = progress.step("control plane");
            let _lock = cache
                .lock("control-plane", &key, || step.message("waiting for another run that is building it"))
                .await?;
            // The previous holder of the lock may have built them.
            let missing = missing();
            if !missing.is_empty() {
                build(&missing, tools, cache, &key, progress).await?;
            }
        }
        let find = |name: &str| {
            locate(name).ok_or_else(|| {
                UserError::new(
                    format!("{name} was built but is no longer in {}", built.display()),
                    "another process removes files from that folder; run again",
                )
            })
        };
        Ok(Binaries {
            etcd: find("etcd")?,
            apiserver: find("kube-apiserver")?,
            controller_manager: find("kube-controller-manager")?,
            kubectl: find("kubectl")?,
        })
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

async fn build(
    programs: &[&Program],
    tools: &Tools,
    cache: &Cache,
    key: &Key,
    progress: Progress,
) -> Result<(), UserError> {
    let names = programs.iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
    let staging = cache.staging_folder("control-plane")?;
    let packages: Vec<&str> = programs.iter().map(|program| program.package).collect();
    let build = GoBuild {
        title: "the control plane",
        names: &names,
        purpose: &format!("to build {names} (KUBEBUILDER_ASSETS does not have them)"),
        go_mod: &tools.control_plane_mod,
        go_sum: &tools.control_plane_sum,
        packages: &packages,
        tags: "",
        linker_flags: &linker_flags(tools)?,
    };
    let output = build.run(staging.path(), progress).await?;
    for program in programs {
        let built = output.join(program.built_as);
        std::fs::rename(&built, staging.path().join(program.name))
            .map_err(|error| user_error::io("find the built", &built, error))?;
    }
    // An earlier build of fewer programs may exist: its programs are kept.
    let entry = cache.entry("control-plane", key);
    if entry.is_dir() {
        for program in programs {
            let path = entry.join(program.name);
            std::fs::rename(staging.path().join(program.name), &path)
                .map_err(|error| user_error::io("install", &path, error))?;
        }
        return Ok(());
    }
    std::fs::remove_dir_all(&output).map_err(|error| user_error::io("remove", &output, error))?;
    cache.install(staging, "control-plane", key).map(|_| ())
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
